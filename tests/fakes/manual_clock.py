"""A clock that stands still until a test moves it."""

from __future__ import annotations


class ManualClock:
    def __init__(self, now: int = 1_700_000_000_000_000) -> None:
        self.moment = now

    def now(self) -> int:
        return self.moment

    def slept_since(self, moment: int) -> int:
        return 0

    def advance(self, *, seconds: float) -> None:
        self.moment += int(seconds * 1_000_000)
