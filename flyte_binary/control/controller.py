"""Workers over a queue of keys: each key gets passes until nothing is left to do for it.

A pass returns when it wants to come back (seconds), or None when only a change can bring it back.
An error brings it back with a growing delay; the pass starts from what is, so nothing is undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

from flyte_binary.control.workqueue import WorkQueue
from flyte_binary.domain.errors import Unavailable

log = structlog.get_logger(__name__)

K = TypeVar("K", bound=Hashable)

FIRST_DELAY_SECONDS = 0.25
LONGEST_DELAY_SECONDS = 30.0


class Controller(Generic[K]):
    def __init__(self, name: str, reconcile: Callable[[K], Awaitable[float | None]], *, workers: int) -> None:
        self.name = name
        self.queue: WorkQueue[K] = WorkQueue()
        self._reconcile = reconcile
        self._workers = workers
        self._failures: dict[K, int] = {}

    async def run(self) -> None:
        """Work until cancelled; a pass that is under way is finished first."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self._workers):
                    group.create_task(self._work(), name=f"{self.name}-{number}")
        finally:
            self.queue.close()

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            finishing = asyncio.ensure_future(self._pass(key))
            try:
                await asyncio.shield(finishing)
            except asyncio.CancelledError:
                await asyncio.wait({finishing}, timeout=5)
                raise

    async def _pass(self, key: K) -> None:
        try:
            after = await self._reconcile(key)
        except Exception as error:  # noqa: BLE001  # the loop outlives every failure of a pass
            self._retry(key, error)
        else:
            self._failures.pop(key, None)
            if after is None:
                self.queue.forget_timer(key)
            else:
                self.queue.add_after(key, after)
        finally:
            self.queue.done(key)

    def _retry(self, key: K, error: Exception) -> None:
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = min(FIRST_DELAY_SECONDS * 2 ** (failures - 1), LONGEST_DELAY_SECONDS)
        told = {"controller": self.name, "key": str(key), "failures": failures, "retry_in": delay}
        if isinstance(error, Unavailable):
            log.warning("pass put off", reason=str(error), **told)
        else:
            log.error("pass failed", exc_info=error, **told)
        self.queue.add_after(key, delay)
