"""The time, as something that tests can move, and the time during which the machine slept."""

from __future__ import annotations

import time
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

    Call `notice` now and then (the controller does): a gap is dated to when it was noticed.
    """

    SMALLEST_GAP_MICROS = 5_000_000
    """Below this a gap is taken for scheduling or a corrected clock."""

    def __init__(self) -> None:
        self._gaps: list[tuple[int, int]] = []
        self._offset = self._boot_minus_monotonic()

    def now(self) -> int:
        return time.time_ns() // 1000

    def notice(self) -> None:
        offset = self._boot_minus_monotonic()
        gap = offset - self._offset
        if gap >= self.SMALLEST_GAP_MICROS:
            self._gaps.append((self.now(), gap))
        self._offset = offset

    def slept_since(self, moment: int) -> int:
        self.notice()
        return sum(gap for noticed, gap in self._gaps if noticed >= moment)

    @staticmethod
    def _boot_minus_monotonic() -> int:
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        if boot is None:  # macOS: its monotonic clock stands still as well, and nothing tells by how much
            return 0
        return (time.clock_gettime_ns(boot) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) // 1000
