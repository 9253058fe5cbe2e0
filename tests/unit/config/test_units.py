"""Durations and sizes, as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.config.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", timedelta(seconds=30)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("250ms", timedelta(milliseconds=250)),
        ("1.5s", timedelta(seconds=1.5)),
        ("2d", timedelta(days=2)),
        ("1500us", timedelta(microseconds=1500)),
        ("3000ns", timedelta(microseconds=3)),
        (" 5m ", timedelta(minutes=5)),
        ("0", timedelta()),
        ("0s", timedelta()),
    ],
)
def test_a_duration_is_read_with_its_units(text: str, expected: timedelta):
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "s", "1x", "-5s", "1h 30m", "1,5s", "٣s", "1h30", "s30"])
def test_what_is_no_duration_is_refused_with_an_example(text: str):
    with pytest.raises(ValueError, match=r"a duration with its unit .* such as"):
        parse_duration(text)


def test_a_bare_number_is_refused_with_the_unit_it_may_have_meant():
    with pytest.raises(ValueError, match='a bare number has no unit, write for instance "60s"'):
        parse_duration("60")
    with pytest.raises(ValueError, match='a bare number has no unit, write for instance "100Mi"'):
        parse_size("100")


def test_less_than_a_microsecond_is_refused_rather_than_rounded():
    with pytest.raises(ValueError, match="whole microseconds"):
        parse_duration("1500ns")


def test_a_duration_longer_than_python_can_hold_is_refused():
    with pytest.raises(ValueError, match="below"):
        parse_duration("9999999999999d")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100Mi", 100 * 2**20),
        ("1Gi", 2**30),
        ("500MB", 500_000_000),
        ("500M", 500_000_000),
        ("4k", 4_000),
        ("4KiB", 4_096),
        ("1.5Gi", 3 * 2**29),
        ("64B", 64),
        ("10 MB", 10_000_000),
        ("0", 0),
    ],
)
def test_a_size_is_read_with_its_unit(text: str, expected: int):
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["", "Mi", "1MBit", "-1Mi", "1 Mi b", "1e3", "1mi"])
def test_what_is_no_size_is_refused_with_an_example(text: str):
    with pytest.raises(ValueError, match=r"a size with its unit .* such as"):
        parse_size(text)


def test_part_of_a_byte_is_refused_rather_than_rounded():
    with pytest.raises(ValueError, match="whole bytes"):
        parse_size("0.3B")


@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=100_000)))
def test_every_duration_survives_being_written_and_read(value: timedelta):
    assert parse_duration(format_duration(value)) == value


@given(st.integers(min_value=0, max_value=2**62))
def test_every_size_survives_being_written_and_read(value: int):
    assert parse_size(format_size(value)) == value


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_with_a_sentence(text: str):
    for parse in (parse_duration, parse_size):
        try:
            parse(text)
        except ValueError as error:
            assert str(error).startswith("a ")
