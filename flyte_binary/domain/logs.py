"""Lines of output of an attempt, live or archived: what travels between executor, archive and readers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    text: str
    """Ends in a newline."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    lines: list[LogLine] = field(default_factory=list[LogLine])
    position: int = 0
    """Where to go on reading; opaque to the caller."""
    ended: bool = False
    """Nothing will follow: the attempt is over and everything was read."""
