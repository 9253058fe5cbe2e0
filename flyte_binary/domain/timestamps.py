"""Times: `datetime` (UTC) in code, microseconds since the epoch in the database, Timestamp on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def micros_to_proto(micros: int) -> Timestamp:
    seconds, rest = divmod(micros, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1000)


def proto_to_micros(stamp: Timestamp) -> int:
    return stamp.seconds * 1_000_000 + stamp.nanos // 1000


def to_proto(moment: datetime) -> Timestamp:
    return micros_to_proto(to_micros(moment))
