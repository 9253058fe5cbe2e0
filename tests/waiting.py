"""Waiting in tests for what somebody else does, under a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], *, seconds: float = 5) -> None:
    """Raises `TimeoutError`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the code under test offers no event for it
            await asyncio.sleep(0)
