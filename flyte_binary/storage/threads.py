"""The bounded pool in which a store does its blocking I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_THREADS = 8
"""Enough to keep a disk busy; a cold file server with more at once only gets slower."""

CLOUD_THREADS = 32
"""They wait for the network most of the time."""


class StoreThreads:
    """Runs blocking functions; what finds no free thread waits its turn.

    A caller that is cancelled stops waiting, but a function that has begun runs to its end.
    """

    def __init__(self, size: int = DEFAULT_THREADS) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(max_workers=size, thread_name_prefix="store")

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: function(*args, **kwargs))

    def close(self, *, wait: bool = True) -> None:
        """Drops what has not begun. `wait` for what has: on the disk it ends soon, a network may keep it for minutes,
        and a server that stops has no more than seconds."""
        self._pool.shutdown(wait=wait, cancel_futures=True)
