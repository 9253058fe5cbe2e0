"""How fast the scheduler may start runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic


class Pace:
    """So many a second in the long run, and up to `burst` at once after a quiet time."""

    def __init__(
        self,
        per_second: float,
        burst: int,
        *,
        time: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`time` and `sleep`, in seconds, are for tests to move."""
        self._per_second = per_second
        self._burst = burst
        self._time = time
        self._sleep = sleep
        self._left = float(burst)
        self._looked_at = time()

    async def take(self) -> None:
        """Wait for one's turn; turns are given in the order in which they are asked for."""
        now = self._time()
        self._left = min(self._burst, self._left + (now - self._looked_at) * self._per_second)
        self._looked_at = now
        self._left -= 1
        if self._left < 0:
            await self._sleep(-self._left / self._per_second)
