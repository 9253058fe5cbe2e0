"""Durations and sizes as people write them: `1h30m`, `250ms`, `100Mi`, `500MB`.

A bare number is refused: whether `60` means seconds, minutes or (as in Go) nanoseconds is a guess, and a wrong guess
is found only in production.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)", re.ASCII)

_BYTES = {
    "B": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|[kKMGTP]i?B?)", re.ASCII)
_BARE_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)

DURATION_EXPECTED = 'a duration with its unit (ms, s, m, h or d), such as "30s" or "1h30m"'
SIZE_EXPECTED = 'a size with its unit (B, Ki, Mi, Gi or kB, MB, GB), such as "100Mi" or "1Gi"'


def parse_duration(text: str) -> timedelta:
    """`1h30m`, `250ms`, `1.5s`; `0` alone needs no unit. Finer than a microsecond is refused.

    Raises `ValueError` with what was expected.
    """
    text = text.strip()
    if text == "0":
        return timedelta()
    if not _DURATION.fullmatch(text):
        raise ValueError(_with_hint(DURATION_EXPECTED, text, like="s"))
    nanoseconds = sum(Decimal(number) * _NANOSECONDS[unit] for number, unit in _DURATION_PART.findall(text))
    microseconds = nanoseconds / 1_000
    if microseconds != int(microseconds):
        raise ValueError("a duration of whole microseconds")
    try:
        return timedelta(microseconds=int(microseconds))
    except OverflowError:
        raise ValueError("a duration below 2,700,000 years") from None


def format_duration(value: timedelta) -> str:
    """The shortest text that `parse_duration` reads back as `value` (which is not negative)."""
    left = value // timedelta(microseconds=1)
    parts: list[str] = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, left = divmod(left, _NANOSECONDS[unit] // 1_000)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_size(text: str) -> int:
    """Bytes of `100Mi`, `1Gi`, `500MB`, `64B`; binary with an `i`, decimal without; `0` alone needs no unit.

    Raises `ValueError` with what was expected.
    """
    text = text.strip()
    if text == "0":
        return 0
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(_with_hint(SIZE_EXPECTED, text, like="Mi"))
    number, unit = match.groups()
    size = Decimal(number) * _BYTES[unit if unit == "B" else unit.removesuffix("B")]
    if size != int(size):
        raise ValueError("a size of whole bytes")
    return int(size)


def format_size(value: int) -> str:
    """The text in the largest binary unit that divides `value` exactly; `parse_size` reads it back."""
    for unit in ("Pi", "Ti", "Gi", "Mi", "Ki"):
        if value and value % _BYTES[unit] == 0:
            return f"{value // _BYTES[unit]}{unit}"
    return f"{value}B" if value else "0"


def _with_hint(expected: str, text: str, *, like: str) -> str:
    if _BARE_NUMBER.fullmatch(text) and not text.startswith("-"):
        return f'{expected}; a bare number has no unit, write for instance "{text.removeprefix("+")}{like}"'
    return expected
