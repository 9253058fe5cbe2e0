"""Times as RFC 3339 text, durations as Go writes them (`1h30m0s`, `1.5s`, `250ms`), both to the nanosecond."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from google.protobuf import duration_pb2, timestamp_pb2

from flyte_binary.domain.errors import InvalidArgument

_SECOND = 1_000_000_000
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
"""Go reads both characters for micro and writes the first."""

_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_UNIT = "ns|us|µs|μs|ms|s|m|h"
_PART = re.compile(f"({_NUMBER})({_UNIT})")
_DURATION = re.compile(f"([+-]?)((?:{_NUMBER}(?:{_UNIT}))+)")
_SECONDS = re.compile("[0-9]{1,20}")
_LONGEST_TEXT = 100
_LONGEST_SECONDS = 315_576_000_000
"""About 10,000 years; protobuf's own limit."""


def time_text(moment: timestamp_pb2.Timestamp) -> str:
    """In UTC, with a fraction if there is one. Raises `InvalidArgument` for what is no time of our era."""
    try:
        return moment.ToJsonString()
    except (ValueError, OverflowError) as error:
        raise InvalidArgument(f"no valid time: {error}") from error


def parse_time(text: str) -> timestamp_pb2.Timestamp:
    moment = timestamp_pb2.Timestamp()
    try:
        moment.FromJsonString(text)
        moment.ToJsonString()
    except (ValueError, OverflowError) as error:
        raise InvalidArgument(
            f'expected a time such as "2026-01-31T12:00:00Z" (RFC 3339), got {text[:_LONGEST_TEXT]!r}'
        ) from error
    return moment


def duration_text(duration: duration_pb2.Duration) -> str:
    total = duration.seconds * _SECOND + duration.nanos
    sign, total = ("-", -total) if total < 0 else ("", total)
    if total == 0:
        return "0s"
    if total < _SECOND:
        unit = next(unit for unit in ("ms", "µs", "ns") if total >= _UNITS[unit])
        return f"{sign}{_fraction(total, _UNITS[unit])}{unit}"
    minutes, left = divmod(total, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_fraction(left, _SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else sign + text


def parse_duration(text: str) -> duration_pb2.Duration:
    """Digits alone are seconds. Raises `InvalidArgument` for everything else that is no duration."""
    if _SECONDS.fullmatch(text):
        return duration_of(int(text) * _SECOND)
    found = _DURATION.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if found is None:
        raise _no_duration(text)
    try:
        total = sum(Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(found[2]))
    except InvalidOperation as error:
        raise _no_duration(text) from error
    return duration_of(-int(total) if found[1] == "-" else int(total))


def duration_of(nanoseconds: int) -> duration_pb2.Duration:
    if abs(nanoseconds) > _LONGEST_SECONDS * _SECOND:
        raise InvalidArgument("a duration of more than 10,000 years")
    seconds, nanos = divmod(abs(nanoseconds), _SECOND)
    sign = -1 if nanoseconds < 0 else 1
    return duration_pb2.Duration(seconds=sign * seconds, nanos=sign * nanos)


def _no_duration(text: str) -> InvalidArgument:
    return InvalidArgument(f'expected a duration such as "1h30m0s", "250ms" or "90", got {text[:_LONGEST_TEXT]!r}')


def _fraction(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
