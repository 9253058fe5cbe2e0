"""The bounded pool for the blocking work of this backend: small files, locks, copies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class LocalThreads:
    def __init__(self, size: int = 4) -> None:
        self._pool = ThreadPoolExecutor(max_workers=size, thread_name_prefix="local-executor")

    async def run(self, function: Callable[[], T], /) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
