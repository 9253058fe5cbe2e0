"""PostgreSQL as a `Database`: a few writers that group commits, and a pool of readers.

Writes of one run always go to the same writer, so they keep their order and never wait for each other's locks. Reads
see one snapshot (REPEATABLE READ, READ ONLY), as they do on SQLite.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TypeVar, cast

from sqlalchemy import Connection, text

from flyte_binary.db.database import Operation, Publish
from flyte_binary.db.postgres.connect import Address, make_engine
from flyte_binary.db.postgres.readers import Readers
from flyte_binary.db.postgres.trouble import first_line, lost_connection, try_again
from flyte_binary.db.postgres.writer import PATIENCE_SECONDS, Job, Writer
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import FlyteError, Unavailable
from flyte_binary.domain.ids import RunId

T = TypeVar("T")

_READ_TRIES = 3
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresDatabase:
    """Made and used on one event loop; the schema must be there (`db/migrate.py`)."""

    def __init__(self, address: Address, publish: Publish, *, readers: int = 10, writers: int = 2) -> None:
        self._loop = asyncio.get_running_loop()
        self._readers = Readers(make_engine(address), readers)
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
        return await self._tried(operation, in_one_moment=True)

    async def point(self, operation: Operation[T]) -> T:
        """Its statements see what is committed when each begins; a transaction around them would cost as much again."""
        return await self._tried(operation, in_one_moment=False)

    async def ping(self) -> None:
        await self.read(lambda tx: tx.connection.execute(text("SELECT 1")))

    async def close(self) -> None:
        """Commit what is waiting, then let go of the connections."""
        if self._closed:
            return
        self._closed = True
        for writer in self._writers:
            await writer.close()
        await self._readers.close()
        await self._writing.dispose()
        await asyncio.sleep(0)  # a transport that was cut is closed in the loop's next turn

    def _writer_for(self, order: tuple[str, ...]) -> Writer:
        if not order:
            return min(self._writers, key=len)
        return self._writers[zlib.crc32("/".join(order).encode()) % len(self._writers)]

    async def _tried(self, operation: Operation[T], *, in_one_moment: bool) -> T:
        if self._closed:
            raise Unavailable("the server is stopping")
        for last in (False,) * (_READ_TRIES - 1) + (True,):
            try:
                return await self._read(operation, in_one_moment=in_one_moment)
            except Exception as error:
                if not (lost_connection(error) or try_again(error)):
                    raise
                if last:
                    raise Unavailable(f"the database cannot be read: {first_line(error)}") from error
        raise AssertionError("the last try returns or raises")

    async def _read(self, operation: Operation[T], *, in_one_moment: bool) -> T:
        async with self._readers.one() as reader:
            if in_one_moment:
                await reader.raw.execute(_BEGIN_READ)
            result, failure = await reader.connection.run_sync(_run, operation)
            if in_one_moment:
                await reader.raw.execute("ROLLBACK")
        if failure is not None:
            raise failure
        return cast("T", result)


def _run(connection: Connection, operation: Operation[T]) -> tuple[T | None, FlyteError | None]:
    """What the operation raises of its own leaves the connection in order."""
    try:
        return operation(Transaction(connection)), None
    except FlyteError as failure:
        return None, failure
