"""Schedules on the time line: zones, changes of the clocks, rates, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from flyteidl2.task import common_pb2
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.schedules import Schedule, schedule_from_proto
from flyte_binary.domain.timestamps import from_micros, to_micros

MINUTE, HOUR, DAY = (
    common_pb2.FIXED_RATE_UNIT_MINUTE,
    common_pb2.FIXED_RATE_UNIT_HOUR,
    common_pb2.FIXED_RATE_UNIT_DAY,
)
ZONES = ["America/New_York", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"]


def utc(text: str) -> int:
    return to_micros(datetime.fromisoformat(text).replace(tzinfo=UTC))


def cron(expression: str, zone: str = "", *, anchor: int = 0) -> Schedule:
    message = common_pb2.Schedule(cron=common_pb2.Cron(expression=expression, timezone=zone))
    return schedule_from_proto(message, anchor=anchor)


def old_cron(expression: str) -> Schedule:
    return schedule_from_proto(common_pb2.Schedule(cron_expression=expression), anchor=0)


def rate(value: int, unit: common_pb2.FixedRateUnit, start: int | None = None, *, anchor: int = 0) -> Schedule:
    message = common_pb2.Schedule(rate=common_pb2.FixedRate(value=value, unit=unit))
    if start is not None:
        message.rate.start_time.FromMicroseconds(start)
    return schedule_from_proto(message, anchor=anchor)


def times(schedule: Schedule, after: str, count: int) -> list[str]:
    moment: int | None = utc(after)
    found: list[str] = []
    for _ in range(count):
        assert moment is not None
        moment = schedule.next_after(moment)
        found.append("never" if moment is None else from_micros(moment).strftime("%Y-%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        # Clocks go from 02:00 to 03:00.
        ("America/New_York", "30 2 * * *", "2026-03-07 00:00", ["03-07 07:30", "03-08 07:00", "03-09 06:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-03-28 00:00", ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
        # From 24:00 to 01:00: midnight does not exist.
        ("America/Santiago", "0 0 * * *", "2026-09-05 00:00", ["09-05 04:00", "09-06 04:00", "09-07 03:00"]),
        # By half an hour, from 02:00 to 02:30.
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-02 12:00", ["10-02 15:45", "10-03 15:30", "10-04 15:15"]),
    ],
)
def test_a_time_that_is_skipped_fires_once_after_the_gap(
    zone: str, expression: str, after: str, expected: list[str]
) -> None:
    assert times(cron(expression, zone), after, 3) == [f"2026-{time}" for time in expected]


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        ("America/New_York", "30 1 * * *", "2026-10-31 00:00", ["10-31 05:30", "11-01 05:30", "11-02 06:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24 00:00", ["10-24 00:30", "10-25 00:30", "10-26 01:30"]),
        ("America/Santiago", "30 23 * * *", "2026-04-04 00:00", ["04-04 02:30", "04-05 02:30", "04-06 03:30"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-03 12:00", ["04-03 14:45", "04-04 14:45", "04-05 15:15"]),
    ],
)
def test_a_time_that_comes_twice_fires_the_first_time_only(
    zone: str, expression: str, after: str, expected: list[str]
) -> None:
    assert times(cron(expression, zone), after, 3) == [f"2026-{time}" for time in expected]


def test_several_times_within_a_gap_fire_once_together() -> None:
    schedule = cron("0,20,40 2-3 * * *", "America/New_York")
    assert times(schedule, "2026-03-08 06:00", 4) == [f"2026-03-08 {time}" for time in ("07:00", "07:20", "07:40")] + [
        "2026-03-09 06:00"
    ]


def test_what_runs_every_hour_goes_on_while_the_clocks_are_changed() -> None:
    autumn = times(cron("0 * * * *", "America/New_York"), "2026-11-01 04:30", 3)
    assert autumn == ["2026-11-01 05:00", "2026-11-01 06:00", "2026-11-01 07:00"]
    spring = times(cron("30 * * * *", "America/New_York"), "2026-03-08 06:00", 2)
    assert spring == ["2026-03-08 06:30", "2026-03-08 07:30"]
    # The last hour of the day comes twice.
    day = times(cron("*/30 * 4 4 *", "America/Santiago"), "2026-04-05 02:10", 4)
    assert day == ["2026-04-05 02:30", "2026-04-05 03:00", "2026-04-05 03:30", "2027-04-04 04:00"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", ["30 2 * * *", "*/15 1-3 * * *", "0 0 * * *", "15 * * * *", "* * * * *"])
def test_no_moment_of_a_year_is_fired_twice_or_out_of_order(zone: str, expression: str) -> None:
    schedule = cron(expression, zone)
    # Around every change of the clocks of the year, minute by minute.
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    offset = moment.astimezone(ZoneInfo(zone)).utcoffset()
    changes: list[datetime] = []
    while moment.year == 2026:
        moment += timedelta(hours=1)
        now = moment.astimezone(ZoneInfo(zone)).utcoffset()
        if now != offset:
            changes.append(moment)
            offset = now
    assert len(changes) == 2
    for change in changes:
        previous = 0
        for minutes in range(-300, 300):
            asked = to_micros(change + timedelta(minutes=minutes))
            found = schedule.next_after(asked)
            assert found is not None and found > asked and found >= previous
            assert schedule.next_after(found - 1) == found
            previous = found


@given(
    zone=st.sampled_from(ZONES),
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    moment=st.datetimes(datetime(2020, 1, 1), datetime(2045, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001  # given a zone
)
def test_a_daily_time_fires_once_a_day_at_its_time_or_after_a_gap(
    zone: str, minute: int, hour: int, moment: datetime
) -> None:
    schedule = cron(f"{minute} {hour} * * *", zone)
    first = schedule.next_after(to_micros(moment))
    assert first is not None
    second = schedule.next_after(first)
    assert second is not None and first > to_micros(moment)
    days = [from_micros(found).astimezone(ZoneInfo(zone)).date() for found in (first, second)]
    assert days[1] - days[0] == timedelta(days=1)
    local = from_micros(first).astimezone(ZoneInfo(zone))
    if (local.hour, local.minute) != (hour, minute):
        wanted = datetime(local.year, local.month, local.day, hour, minute)  # noqa: DTZ001  # local
        exists = wanted.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).astimezone(ZoneInfo(zone))
        assert exists.replace(tzinfo=None) != wanted


def test_a_zone_may_stand_in_front_of_an_expression_of_the_old_form() -> None:
    for expression in ("CRON_TZ=Asia/Tokyo 0 9 * * *", "TZ=Asia/Tokyo   0 9 * * *"):
        assert times(old_cron(expression), "2026-01-01 00:00", 1) == ["2026-01-02 00:00"]
    assert times(old_cron("CRON_TZ=Asia/Tokyo @daily"), "2026-01-01 00:00", 1) == ["2026-01-01 15:00"]
    assert times(cron("CRON_TZ=Asia/Tokyo 0 9 * * *"), "2026-01-01 00:00", 1) == ["2026-01-02 00:00"]


def test_without_a_zone_it_is_utc() -> None:
    assert times(old_cron("0 9 * * *"), "2026-06-01 00:00", 1) == ["2026-06-01 09:00"]
    assert times(cron("0 9 * * *"), "2026-06-01 00:00", 1) == ["2026-06-01 09:00"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h30m", 5400), ("90s", 90), ("1.5m", 90), ("1m.5s", 60), ("250ms", 1), ("1999ms", 1), ("2h0.5h", 9000)],
)
def test_every_takes_durations_cut_to_whole_seconds(text: str, seconds: int) -> None:
    schedule = cron(f"@every {text}", anchor=utc("2026-01-01 00:00") + 700_000)
    anchor = utc("2026-01-01 00:00")
    assert schedule.next_after(anchor) == anchor + seconds * 1_000_000
    assert schedule.next_after(anchor + seconds * 1_000_000) == anchor + 2 * seconds * 1_000_000


@pytest.mark.parametrize("text", ["", "5", "5 m", "-5m", "0s", "1h 30m", "1x", ".s", "1e3s", "9999999h", "\u0661s"])
def test_every_refuses_what_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidArgument, match="no duration"):
        cron(f"@every {text}")


def test_a_rate_counts_from_its_deployment() -> None:
    schedule = rate(2, HOUR, anchor=utc("2026-01-01 00:30"))
    assert times(schedule, "2026-01-01 00:30", 2) == ["2026-01-01 02:30", "2026-01-01 04:30"]
    assert times(schedule, "2026-01-05 00:00", 1) == ["2026-01-05 00:30"]


def test_a_rate_with_a_start_counts_from_there_and_includes_it() -> None:
    schedule = rate(1, DAY, utc("2026-01-03 06:00"), anchor=utc("2026-01-01 00:30"))
    assert times(schedule, "2026-01-01 00:30", 2) == ["2026-01-03 06:00", "2026-01-04 06:00"]
    past = rate(15, MINUTE, utc("2020-01-01 00:05"), anchor=utc("2026-01-01 00:30"))
    assert times(past, "2026-01-01 00:30", 2) == ["2026-01-01 00:35", "2026-01-01 00:50"]


@given(
    start=st.integers(-(10**15), 4 * 10**15),
    value=st.integers(1, 10**6),
    moment=st.integers(0, 4 * 10**15),
)
def test_a_rate_never_stands_still_and_leaves_nothing_out(start: int, value: int, moment: int) -> None:
    schedule = rate(value, MINUTE, start)
    found = schedule.next_after(moment)
    assert found is not None and found > moment
    assert (found - start) % (value * 60_000_000) == 0 and found >= start
    assert found - max(moment, start - 1) <= value * 60_000_000


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (common_pb2.Schedule(), "one of cron and rate is required"),
        (common_pb2.Schedule(rate=common_pb2.FixedRate(value=0, unit=MINUTE)), "rate.value 0"),
        (common_pb2.Schedule(rate=common_pb2.FixedRate(value=2**32 - 1, unit=DAY)), "out of range"),
        (common_pb2.Schedule(rate=common_pb2.FixedRate(value=5)), "rate.unit is required"),
        (
            common_pb2.Schedule(rate=common_pb2.FixedRate(value=5, unit=MINUTE, start_time=Timestamp(seconds=2**62))),
            "start_time",
        ),
        (common_pb2.Schedule(cron=common_pb2.Cron(expression="0 0 30 2 *")), "never run"),
        (common_pb2.Schedule(cron=common_pb2.Cron(expression="* * * * *", timezone="Mars/Olympus")), "Mars/Olympus"),
        (common_pb2.Schedule(cron=common_pb2.Cron(expression="* * * * *", timezone="../etc")), "no time zone"),
        (common_pb2.Schedule(cron=common_pb2.Cron(expression="* * * * *", timezone="America")), "no time zone"),
        (common_pb2.Schedule(cron=common_pb2.Cron(expression="* * * * *", timezone="a\0b")), "no time zone"),
        (common_pb2.Schedule(cron=common_pb2.Cron(expression="TZ=UTC * * * * *", timezone="UTC")), "given twice"),
        (common_pb2.Schedule(cron_expression="TZ=UTC"), "5 fields"),
        (common_pb2.Schedule(cron_expression="TZ="), "no time zone"),
    ],
)
def test_what_never_fires_is_refused_with_its_field(message: common_pb2.Schedule, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        schedule_from_proto(message, anchor=0)
    assert words in caught.value.message and "automation_spec.schedule" in caught.value.message


@given(
    zone=st.sampled_from([*ZONES, "UTC", "Asia/Kathmandu", "Pacific/Apia"]),
    expression=st.sampled_from(
        ["*/7 * * * *", "0 */3 * * *", "59 23 31 12 *", "30 1-3 * * 0", "15,45 2 1,15 * *", "0 0 29 2 *", "@weekly"]
    ),
    moment=st.integers(utc("2011-12-01 00:00"), utc("2060-01-01 00:00")),
    later=st.integers(0, 400 * 24 * 3600 * 1_000_000),
)
def test_what_comes_next_is_later_and_never_jumps_over_anything(
    zone: str, expression: str, moment: int, later: int
) -> None:
    schedule = cron(expression, zone)
    found, found_later = schedule.next_after(moment), schedule.next_after(moment + later)
    assert found is not None and found_later is not None
    assert found > moment and found % 60_000_000 == 0
    assert schedule.next_after(found - 1) == found
    assert found_later >= found
    # Whoever asks in between hears the same, or, if that has passed, something later.
    assert found_later == found if moment + later < found else found_later > found
