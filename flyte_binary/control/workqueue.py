"""A queue of keys: a key waits at most once, and is never worked on twice at the same time.

A key that is added while it is being worked on is worked on again afterwards, so that a change
which arrives in the middle of a pass is never lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    def __init__(self) -> None:
        self._ready: deque[K] = deque()
        self._waiting: set[K] = set()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._idle: deque[asyncio.Future[None]] = deque()

    def add(self, key: K) -> None:
        if key in self._working:
            self._again.add(key)
            return
        if key in self._waiting:
            return
        self._waiting.add(key)
        self._ready.append(key)
        self._wake_one()

    def add_after(self, key: K, seconds: float) -> None:
        """Add once the time has passed; a later call replaces an earlier one."""
        self.forget_timer(key)
        self._timers[key] = asyncio.get_running_loop().call_later(max(seconds, 0), self._due, key)

    def forget_timer(self, key: K) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    async def get(self) -> K:
        """The next key; it counts as worked on until `done`."""
        while not self._ready:
            await self._turn()
        key = self._ready.popleft()
        self._waiting.discard(key)
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing is being worked on; timers may still run."""
        return not self._ready and not self._working

    def due_in(self, key: K) -> float | None:
        """Seconds until a timer adds the key, None if there is no timer for it."""
        timer = self._timers.get(key)
        return None if timer is None else max(timer.when() - asyncio.get_running_loop().time(), 0)

    def __len__(self) -> int:
        return len(self._ready)

    async def _turn(self) -> None:
        """Wait to be woken: one worker for each key, not all of them for every key."""
        idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(idle)
        try:
            await idle
        except asyncio.CancelledError:
            # Woken and cancelled at the same time: the key is somebody else's turn.
            if idle.done() and not idle.cancelled():
                self._wake_one()
            raise
        finally:
            if idle in self._idle:
                self._idle.remove(idle)

    def _wake_one(self) -> None:
        while self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)
                return

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)
