"""What failed and may pass is tried again later, each time after a longer pause, and stays out of the others' way."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_FIRST_DELAY_MICROS = 1_000_000
_LONGEST_DELAY_MICROS = 60_000_000


class PutOff(Generic[K]):
    """A memory of one process: another one, or the next, tries at once. All times are microseconds since the epoch."""

    def __init__(self) -> None:
        self._failures: dict[K, int] = {}
        self._not_before: dict[K, int] = {}

    def holds_back(self, key: K, now: int) -> bool:
        # Farther away than any delay: the clock was set back.
        return 0 < self._not_before.get(key, 0) - now <= _LONGEST_DELAY_MICROS

    def failed(self, key: K, now: int) -> tuple[int, int]:
        """How often it has by now, and the pause."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(_FIRST_DELAY_MICROS << min(failures - 1, 6), _LONGEST_DELAY_MICROS)
        self._not_before[key] = now + delay
        return failures, delay

    def done(self, key: K) -> None:
        self._failures.pop(key, None)
        self._not_before.pop(key, None)

    def next_try(self, now: int) -> int | None:
        """Called after everything that is due was tried: what is left over from before `now` is not due any more, and
        is forgotten."""
        self._not_before = {key: time for key, time in self._not_before.items() if time > now}
        self._failures = {key: self._failures[key] for key in self._not_before}
        return min(self._not_before.values(), default=None)
