"""Those who wait for more of a log.

Output grows without telling anyone: a hint per write would cost every attempt for the few that are
read. So while somebody waits, one ticker looks at the sizes of the files waited for, 2 µs each.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from flyte_binary.domain.ids import AttemptId
from flyte_binary.executor.local.log_files import size_of

_TICK_SECONDS = 0.05


class LogWaiters:
    def __init__(self) -> None:
        self._waiting: dict[AttemptId, list[tuple[Path, int, asyncio.Future[None]]]] = {}
        self._ticker: asyncio.Task[None] | None = None

    async def wait(self, attempt: AttemptId, folder: Path, position: int, timeout_seconds: float) -> None:
        """Until the log is longer than `position`, the attempt changes, or the time is over."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (folder, position, done)
        self._waiting.setdefault(attempt, []).append(waiter)
        if self._ticker is None or self._ticker.done():
            self._ticker = asyncio.create_task(self._tick(), name="log-ticker")
        try:
            async with asyncio.timeout(timeout_seconds):
                await done
        except TimeoutError:
            pass
        finally:
            left = [other for other in self._waiting.get(attempt, []) if other is not waiter]
            if left:
                self._waiting[attempt] = left
            else:
                self._waiting.pop(attempt, None)

    def changed(self, attempt: AttemptId) -> None:
        for _, _, done in self._waiting.get(attempt, []):
            if not done.done():
                done.set_result(None)

    async def close(self) -> None:
        for attempt in list(self._waiting):
            self.changed(attempt)
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)

    async def _tick(self) -> None:
        while self._waiting:
            for waiters in list(self._waiting.values()):
                for folder, position, done in waiters:
                    if not done.done() and size_of(folder) > position:
                        done.set_result(None)
            await asyncio.sleep(_TICK_SECONDS)
