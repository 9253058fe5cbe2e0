"""A few connections for reading, handed out one at a time.

SQLAlchemy's pool does more at every checkout than a read by key takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any  # asyncpg has no type annotations

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from flyte_binary.domain.errors import Unavailable

WAIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Reader:
    connection: AsyncConnection
    raw: Any  # as above


class Readers:
    def __init__(self, engine: AsyncEngine, size: int) -> None:
        self._engine = engine
        self._places = asyncio.Semaphore(size)
        self._idle: list[Reader] = []

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[Reader]:
        """Kept for the next, unless the block raises. Raises `Unavailable` if none gets free in time."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._places.acquire()
        except TimeoutError as error:
            raise Unavailable("the database has no connection free for reading") from error
        try:
            reader = self._idle.pop() if self._idle else await self._connect()
            try:
                yield reader
            except BaseException:
                await discard(reader)
                raise
            self._idle.append(reader)
        finally:
            self._places.release()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().connection.close()
        await self._engine.dispose()

    async def _connect(self) -> Reader:
        connection = await self._engine.connect()
        return Reader(connection, (await connection.get_raw_connection()).driver_connection)


async def discard(reader: Reader) -> None:
    """Nobody should use it again: it is lost, or somewhere in the middle of a read."""
    reader.raw.terminate()
    await reader.connection.invalidate()
    await reader.connection.close()
