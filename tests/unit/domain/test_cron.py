"""Cron expressions: what they name, and which are refused."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flyte_binary.domain.cron import DESCRIPTORS, CronError, parse_cron

MONTHS = ["JAN", "feb", "Mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["SUN", "mon", "Tue", "wed", "thu", "fri", "sat"]


def after(expression: str, moment: str, count: int) -> list[str]:
    wall = datetime.fromisoformat(moment)
    return [found.isoformat(" ", "minutes") for found in islice(parse_cron(expression).after(wall), count)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", ["2026-01-01 00:01", "2026-01-01 00:02"]),
        ("? ? ? ? ?", ["2026-01-01 00:01", "2026-01-01 00:02"]),
        ("*/20 1-2 * * *", ["2026-01-01 01:00", "2026-01-01 01:20", "2026-01-01 01:40", "2026-01-01 02:00"]),
        ("50/4 3 * * *", ["2026-01-01 03:50", "2026-01-01 03:54", "2026-01-01 03:58", "2026-01-02 03:50"]),
        ("0,30 0 * * *", ["2026-01-01 00:30", "2026-01-02 00:00"]),
        ("0 0 31 * *", ["2026-01-31 00:00", "2026-03-31 00:00", "2026-05-31 00:00"]),
        ("0 12 * FEB mon", ["2026-02-02 12:00", "2026-02-09 12:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 */24 * * *", ["2026-01-02 00:00"]),
        ("  @daily ", ["2026-01-02 00:00"]),
        ("@midnight", ["2026-01-02 00:00"]),
        ("@hourly", ["2026-01-01 01:00"]),
        ("@weekly", ["2026-01-04 00:00"]),
        ("@monthly", ["2026-02-01 00:00"]),
        ("@yearly", ["2027-01-01 00:00"]),
        ("@annually", ["2027-01-01 00:00"]),
    ],
)
def test_the_times_of_an_expression_come_in_order(expression: str, expected: list[str]) -> None:
    assert after(expression, "2026-01-01 00:00", len(expected)) == expected


def test_of_two_restricted_day_fields_one_is_enough() -> None:
    assert after("0 0 10 * fri", "2026-01-01 00:00", 4) == [
        "2026-01-02 00:00",
        "2026-01-09 00:00",
        "2026-01-10 00:00",
        "2026-01-16 00:00",
    ]


def test_with_a_star_in_one_day_field_the_other_decides() -> None:
    assert after("0 0 * * fri", "2026-01-01 00:00", 2) == ["2026-01-02 00:00", "2026-01-09 00:00"]
    assert after("0 0 10 * *", "2026-01-01 00:00", 2) == ["2026-01-10 00:00", "2026-02-10 00:00"]


def test_a_star_with_a_step_is_a_restriction() -> None:
    assert after("0 0 */15 * fri", "2026-01-01 00:00", 3) == [
        "2026-01-02 00:00",
        "2026-01-09 00:00",
        "2026-01-16 00:00",
    ]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "5 fields"),
        ("* * * *", "found 4 fields"),
        ("0 * * * * *", "found 6 fields"),
        ("60 * * * *", "minute: 60 is not between 0 and 59"),
        ("* 24 * * *", "hour: 24"),
        ("* * 0 * *", "day of month: 0"),
        ("* * * 13 *", "month: 13"),
        ("* * * * 7", "day of week: 7 is not between 0 and 6"),
        ("*/0 * * * *", "the step"),
        ("*/x * * * *", "the step"),
        ("9-3 * * * *", "ends before it begins"),
        ("1,,2 * * * *", "minute: ''"),
        ("-1 * * * *", "minute: ''"),
        ("*-5 * * * *", "minute: '*'"),
        ("1-2-3 * * * *", "minute: '2-3'"),
        ("* * * january *", "month: 'january'"),
        ("٣ * * * *", "minute: '٣'"),
        ("0 0 30 2 *", "day 30 does not occur in month 2"),
        ("0 0 31 4,6,9,11 *", "would never run"),
        ("@fortnightly", "@hourly"),
        ("@EVERY 5m", "unknown descriptor"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_field(expression: str, words: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(expression)
    assert words in str(caught.value)


def test_a_date_that_never_comes_may_stand_beside_days_of_the_week() -> None:
    assert after("0 0 30 2 mon", "2026-01-01 00:00", 1) == ["2026-02-02 00:00"]


def test_the_calendar_ends_without_an_error() -> None:
    assert after("* * * * *", "9999-12-30 23:59", 1) == []
    assert after("0 0 1 1 *", "9998-06-01 00:00", 1) == ["9999-01-01 00:00"]


def fields_of(low: int, high: int, words: list[str] | None = None) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    """A field of an expression, and what it means by another way of reading it."""
    numbers = st.integers(low, high)

    def spelled(value: int) -> str:
        return words[value - low] if words and value % 2 else str(value)

    def span(bounds: tuple[int, int, int]) -> tuple[str, frozenset[int]]:
        first, last, step = min(bounds[:2]), max(bounds[:2]), bounds[2]
        return f"{spelled(first)}-{spelled(last)}/{step}", frozenset(range(first, last + 1, step))

    single = numbers.map(lambda value: (spelled(value), frozenset({value})))
    star = st.just(("*", frozenset(range(low, high + 1))))
    stepped = st.integers(2, high).map(lambda step: (f"*/{step}", frozenset(range(low, high + 1, step))))
    spans = st.tuples(numbers, numbers, st.integers(1, 9)).map(span)
    listed = st.lists(st.one_of(single, spans), min_size=1, max_size=3).map(
        lambda items: (",".join(text for text, _ in items), frozenset().union(*(values for _, values in items)))
    )
    return st.one_of(star, stepped, listed)


@given(
    minute=fields_of(0, 59),
    hour=fields_of(0, 23),
    day=fields_of(1, 31),
    month=fields_of(1, 12, MONTHS),
    weekday=fields_of(0, 6, WEEKDAYS),
    wall=st.datetimes(datetime(2020, 1, 1), datetime(2060, 1, 1)),  # noqa: DTZ001  # local times
)
def test_every_time_meets_the_fields_and_none_in_between_does(
    minute: tuple[str, frozenset[int]],
    hour: tuple[str, frozenset[int]],
    day: tuple[str, frozenset[int]],
    month: tuple[str, frozenset[int]],
    weekday: tuple[str, frozenset[int]],
    wall: datetime,
) -> None:
    try:
        cron = parse_cron(" ".join(text for text, _ in (minute, hour, day, month, weekday)))
    except CronError:
        assume(False)
        raise

    def named(moment: datetime) -> bool:
        of_month, of_week = moment.day in day[1], moment.isoweekday() % 7 in weekday[1]
        plain = "*" in (day[0], weekday[0])
        on_day = of_month and of_week if plain else of_month or of_week
        return moment.month in month[1] and on_day and moment.hour in hour[1] and moment.minute in minute[1]

    found = next(cron.after(wall), None)
    assert found is not None and found > wall and named(found)
    # One by one for a day, which is enough to catch a time that was jumped over.
    probe = wall.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while probe < min(found, wall + timedelta(days=1)):
        assert not named(probe)
        probe += timedelta(minutes=1)


def test_descriptors_are_expressions_themselves() -> None:
    for name, expression in DESCRIPTORS.items():
        assert parse_cron(name) == parse_cron(expression)
