"""PostgreSQL as a `Database`: a few writers that group commits, and a pool of readers.

Writes of one run always go to the same writer, so they keep their order and never wait for each other's locks. Reads
see one snapshot (REPEATABLE READ, READ ONLY), as they do on SQLite.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Any, TypeVar  # Any: asyncpg has no types

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from flyte_binary.db.database import Operation, Publish
from flyte_binary.db.postgres.connect import Address, make_engine
from flyte_binary.db.postgres.trouble import lost_connection, try_again
from flyte_binary.db.postgres.writer import PATIENCE_SECONDS, Job, Writer
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import Unavailable
from flyte_binary.domain.ids import RunId

T = TypeVar("T")

_READ_TRIES = 3
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresDatabase:
    """Made and used on one event loop; the schema must be there (`db/migrate.py`)."""

    def __init__(self, address: Address, publish: Publish, *, readers: int = 10, writers: int = 2) -> None:
        self._loop = asyncio.get_running_loop()
        self._reading = make_engine(address, pool_size=readers)
        self._writing = make_engine(address)
        self._writers = [Writer(self._writing, publish, f"postgres-writer-{number}") for number in range(writers)]
        self._closed = False

    async def write(self, operation: Operation[T], *, run: RunId | None = None) -> T:
        if self._closed:
            raise Unavailable("the server is stopping")
        future: asyncio.Future[T] = self._loop.create_future()
        order = () if run is None else (run.project, run.domain, run.name)
        self._writer_for(order).put(Job(operation, future, order, self._loop.time() + PATIENCE_SECONDS))
        return await future

    async def read(self, operation: Operation[T]) -> T:
        if self._closed:
            raise Unavailable("the server is stopping")
        for last in (False,) * (_READ_TRIES - 1) + (True,):
            try:
                return await self._read(operation)
            except Exception as error:
                if not (lost_connection(error) or try_again(error)):
                    raise
                if last:
                    raise Unavailable(f"the database cannot be read: {error}") from error
        raise AssertionError("the last try returns or raises")

    async def point(self, operation: Operation[T]) -> T:
        return await self.read(operation)

    async def ping(self) -> None:
        await self.read(lambda tx: tx.connection.execute(text("SELECT 1")))

    async def close(self) -> None:
        """Commit what is waiting, then let go of the connections."""
        if self._closed:
            return
        self._closed = True
        for writer in self._writers:
            await writer.close()
        await self._reading.dispose()
        await self._writing.dispose()
        await asyncio.sleep(0)  # a transport that was cut is closed in the loop's next turn

    def _writer_for(self, order: tuple[str, ...]) -> Writer:
        if not order:
            return min(self._writers, key=len)
        return self._writers[zlib.crc32("/".join(order).encode()) % len(self._writers)]

    async def _read(self, operation: Operation[T]) -> T:
        async with self._reading.connect() as connection:
            raw: Any = (await connection.get_raw_connection()).driver_connection  # Any: asyncpg has no types
            try:
                await raw.execute(_BEGIN_READ)
                result = await connection.run_sync(lambda inner: operation(Transaction(inner)))
                await raw.execute("ROLLBACK")
            except BaseException as error:
                await _put_right(connection, raw, error)
                raise
            return result


async def _put_right(connection: AsyncConnection, raw: Any, error: BaseException) -> None:  # Any: as above
    """After a failed read. One that was cancelled half-way has a connection that nobody should use again."""
    if isinstance(error, Exception) and not lost_connection(error):
        try:
            await raw.execute("ROLLBACK")
            return
        except Exception:  # noqa: BLE001  # the first error is the one to be told
            pass
    raw.terminate()
    await connection.invalidate()
