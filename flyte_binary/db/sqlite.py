"""SQLite: one writer thread with one connection, a few reader threads, WAL.

`BEGIN IMMEDIATE` takes the write lock before the first read of a batch, so that no operation
decides on a snapshot that another process (a backup, `migrate`) has since overtaken.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar  # Any: results of operations of every type share one queue

import structlog
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from flyte_binary.db.database import Operation, Publish
from flyte_binary.db.dialect import SQLITE_PRAGMAS, cannot_work
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.errors import Unavailable
from flyte_binary.domain.ids import RunId

log = structlog.get_logger(__name__)

T = TypeVar("T")

BATCH_LIMIT = 256
READERS = 4


def make_engine(path: Path) -> Engine:
    """An engine in autocommit mode: transactions are begun by hand, here and nowhere else."""
    engine = create_engine(
        f"sqlite+pysqlite:///{path}",
        isolation_level="AUTOCOMMIT",
        poolclass=NullPool,
        connect_args={"check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: sqlite3.Connection, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]  # used by SQLAlchemy
        for pragma in SQLITE_PRAGMAS:
            connection.execute(pragma)

    return engine


@dataclass(frozen=True, slots=True)
class _Job:
    operation: Operation[Any]
    future: asyncio.Future[Any]


@dataclass(slots=True)
class _Outcome:
    job: _Job
    result: Any = None
    error: BaseException | None = None


class SqliteDatabase:
    """Both halves over one file; made and used on one event loop."""

    def __init__(self, path: Path, publish: Publish) -> None:
        self._engine = make_engine(path)
        self._publish = publish
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._local = threading.local()
        self._reader_connections: list[Connection] = []
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="sqlite-reader")
        self._connection = self._engine.connect()
        self._writer = threading.Thread(target=self._write_forever, name="sqlite-writer", daemon=True)
        self._writer.start()

    async def write(self, operation: Operation[T], *, run: RunId | None = None) -> T:  # noqa: ARG002  # one writer keeps every order
        if self._closed:
            raise Unavailable("the server is stopping")
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(operation, future))
        return await future

    async def read(self, operation: Operation[T]) -> T:
        if self._closed:
            raise Unavailable("the server is stopping")
        return await self._loop.run_in_executor(self._readers, self._read, operation)

    async def point(self, operation: Operation[T]) -> T:
        if self._closed:
            raise Unavailable("the server is stopping")
        return self._read(operation)

    async def ping(self) -> None:
        await self.read(lambda tx: tx.connection.execute(text("SELECT 1")))

    async def close(self) -> None:
        """Commit what is waiting, then let go of the file."""
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        await self._loop.run_in_executor(None, self._writer.join)
        self._readers.shutdown(wait=True)
        for connection in self._reader_connections:
            connection.close()
        self._engine.dispose()

    def _read(self, operation: Operation[T]) -> T:
        connection = self._reader_connection()
        raw = connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        raw.execute("BEGIN")
        try:
            return operation(Transaction(connection))
        except (sqlite3.Error, DBAPIError) as error:
            if cannot_work(error):
                raise _unavailable(error) from error
            raise
        finally:
            raw.execute("ROLLBACK")

    def _reader_connection(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._engine.connect()
            self._local.connection = connection
            self._reader_connections.append(connection)
        return connection

    def _write_forever(self) -> None:
        with self._connection as connection:
            while (job := self._jobs.get()) is not None:
                batch = [job]
                last = self._drain_into(batch)
                self._commit_batch(connection, batch)
                if last:
                    return

    def _drain_into(self, batch: list[_Job]) -> bool:
        """Take what waits, up to the limit; True if the end mark was among it."""
        while len(batch) < BATCH_LIMIT:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return False
            if job is None:
                return True
            batch.append(job)
        return False

    def _commit_batch(self, connection: Connection, batch: list[_Job]) -> None:
        """What one operation has broken must not harm the others: a batch that fails is run again one by one."""
        raw = connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        changes: set[tuple[topics.Topic, topics.Key]] = set()
        try:
            raw.execute("BEGIN IMMEDIATE")
            outcomes = [_run_one(connection, raw, job, changes) for job in batch]
            raw.execute("COMMIT")
        except Exception as error:  # noqa: BLE001  # whatever it is, everyone is answered and the writer lives on
            log.error("the database did not commit", error=str(error), operations=len(batch))
            if raw.in_transaction:
                raw.execute("ROLLBACK")
            if len(batch) > 1:
                for job in batch:
                    self._commit_batch(connection, [job])
                return
            failure = Unavailable(f"the database did not commit: {error}")
            outcomes = [_Outcome(job, error=failure) for job in batch]
            changes.clear()
        with suppress(RuntimeError):  # the loop is closed: nobody is left who waits
            self._loop.call_soon_threadsafe(self._answer, outcomes, changes)

    def _answer(self, outcomes: list[_Outcome], changes: set[tuple[topics.Topic, topics.Key]]) -> None:
        if changes:
            self._publish(changes)
        for outcome in outcomes:
            if outcome.job.future.cancelled():
                continue
            if outcome.error is not None:
                outcome.job.future.set_exception(outcome.error)
                continue
            outcome.job.future.set_result(outcome.result)


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(f"the database cannot work: {error}")


def _run_one(
    connection: Connection, raw: sqlite3.Connection, job: _Job, changes: set[tuple[topics.Topic, topics.Key]]
) -> _Outcome:
    tx = Transaction(connection)
    raw.execute("SAVEPOINT operation")
    try:
        result = job.operation(tx)
    except Exception as error:  # noqa: BLE001  # whatever the operation raises belongs to its caller
        raw.execute("ROLLBACK TO operation")
        raw.execute("RELEASE operation")
        return _Outcome(job, error=_unavailable(error) if cannot_work(error) else error)
    raw.execute("RELEASE operation")
    changes |= tx.changes
    return _Outcome(job, result=result)
