"""Times: `datetime` (UTC) in code, microseconds since the epoch in the database, Timestamp on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SECONDS = range(-62_135_596_800, 253_402_300_800)


def to_micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def micros_to_proto(micros: int) -> Timestamp:
    seconds, rest = divmod(micros, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1000)


def proto_to_micros(stamp: Timestamp) -> int:
    return stamp.seconds * 1_000_000 + stamp.nanos // 1000


def is_time(stamp: Timestamp) -> bool:
    """Whether it is one that a Timestamp may hold: between the years 1 and 9999. What arrives may be anything."""
    return stamp.seconds in _SECONDS and 0 <= stamp.nanos < 1_000_000_000


def to_proto(moment: datetime) -> Timestamp:
    return micros_to_proto(to_micros(moment))
