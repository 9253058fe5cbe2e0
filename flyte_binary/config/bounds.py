"""What a value of the configuration may be beyond its type; stands in the annotation of its field.

A duration or a size without a `Between` must be more than zero.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from flyte_binary.config.units import format_duration


@dataclass(frozen=True, slots=True)
class Between:
    """Inclusive limits, in seconds for a duration, in bytes for a size."""

    low: float
    high: float | None = None

    def problem(self, value: float | timedelta) -> str | None:
        """What was expected, or None if `value` is within."""
        number = value.total_seconds() if isinstance(value, timedelta) else value
        if number >= self.low and (self.high is None or number <= self.high):
            return None
        low, high = self._text(self.low, value), self._text(self.high, value)
        return f"at least {low}" if high is None else f"between {low} and {high}"

    @staticmethod
    def _text(limit: float | None, value: float | timedelta) -> str | None:
        if limit is None:
            return None
        return format_duration(timedelta(seconds=limit)) if isinstance(value, timedelta) else f"{limit:g}"


@dataclass(frozen=True, slots=True)
class Matching:
    """A text that the whole of `pattern` matches; `words` say it to a person."""

    pattern: re.Pattern[str]
    words: str

    def problem(self, value: str) -> str | None:
        return None if self.pattern.fullmatch(value) else self.words


NAME = Matching(
    re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII),
    "1 to 63 lower-case letters, digits and dashes, with a letter or digit at both ends",
)
HEADER = Matching(re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]*", re.ASCII), "the name of an HTTP header, or nothing")
ORIGIN = Matching(
    re.compile(r"https?://[^/\s?#@*]+", re.ASCII | re.IGNORECASE),
    'the origin of a web page, such as "https://console.example.com"',
)
HOST = Matching(
    re.compile(r"\*|(?:\*\.)?[A-Za-z0-9_.-]+|\[?[0-9A-Fa-f:.]+\]?", re.ASCII),
    'the name of a host without scheme and port, such as "flyte.example.com"',
)
LISTEN = Matching(
    re.compile(r"[A-Za-z0-9_.-]+|\[?[0-9A-Fa-f:.]+\]?", re.ASCII),
    'an IP address or the name of a host, such as "127.0.0.1"',
)
URL = Matching(
    re.compile(r"|https?://[^/\s?#@]+(?:/[^\s?#]*)?", re.ASCII | re.IGNORECASE),
    'a scheme and host, and the path at which a proxy has it, such as "https://example.com/flyte"',
)
PATH = Matching(
    re.compile(r"(?:/[A-Za-z0-9_-]+)+", re.ASCII),
    'a path without a slash at its end, such as "/v2"',
)
POSTGRES_URL = Matching(
    re.compile(r"|postgres(?:ql)?://[^\s#]*", re.ASCII),
    'a URL such as "postgresql://user:password@host:5432/flyte"',
)
