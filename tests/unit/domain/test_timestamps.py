"""Times in code, in the database and on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.domain.timestamps import from_micros, micros_to_proto, proto_to_micros, to_micros, to_proto

moments = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone


@given(moments)
def test_no_microsecond_is_lost_between_the_three(moment: datetime) -> None:
    micros = to_micros(moment)

    assert from_micros(micros) == moment
    assert proto_to_micros(micros_to_proto(micros)) == micros
    assert to_proto(moment).ToDatetime(tzinfo=UTC) == moment


def test_other_zones_mean_the_same_moment() -> None:
    moment = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))

    assert from_micros(to_micros(moment)) == datetime(2026, 1, 1, 10, tzinfo=UTC)


def test_parts_of_a_microsecond_are_cut_off() -> None:
    assert proto_to_micros(Timestamp(seconds=1, nanos=1_999)) == 1_000_001
