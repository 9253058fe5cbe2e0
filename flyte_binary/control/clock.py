"""The time, as something that tests can move, and the time during which the machine slept."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Microseconds since the epoch, UTC."""
        ...

    def slept_since(self, moment: int) -> int:
        """Microseconds that the machine was suspended since `moment`: timeouts do not count them."""
        ...


class SystemClock:
    """Wall time; notices a suspended machine by the monotonic clock, which stands still meanwhile.

    A gap is dated to when it was noticed, so every question for the time looks for one: what begins
    after the machine has woken up is never credited with a sleep from before.
    """

    SMALLEST_GAP_MICROS = 5_000_000
    """Below this a gap is taken for scheduling or a corrected clock."""

    def __init__(self, wall: Callable[[], int] | None = None, asleep: Callable[[], int] | None = None) -> None:
        """`wall` is the time and `asleep` for how long the machine has slept since it was started, both in
        microseconds; they default to the machine's own."""
        self._wall = wall or _wall
        self._asleep = asleep or _boot_minus_monotonic
        self._gaps: list[tuple[int, int]] = []
        self._offset = self._asleep()

    def now(self) -> int:
        now = self._wall()
        self._notice(now)
        return now

    def slept_since(self, moment: int) -> int:
        self._notice(self._wall())
        return sum(gap for noticed, gap in self._gaps if noticed > moment)

    def _notice(self, now: int) -> None:
        offset = self._asleep()
        gap = offset - self._offset
        if gap >= self.SMALLEST_GAP_MICROS:
            self._gaps.append((now, gap))
        self._offset = offset


def _wall() -> int:
    return time.time_ns() // 1000


def _boot_minus_monotonic() -> int:
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    if boot is None:  # macOS: its monotonic clock stands still as well, and nothing tells by how much
        return 0
    return (time.clock_gettime_ns(boot) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) // 1000
