"""One writer: a connection, a queue, and what waits in it committed together.

A batch runs in one transaction. It runs bare at first, since most operations succeed; if one fails, the transaction is
rolled back and the batch runs again with a savepoint for each operation, so that what one has broken does not harm the
others; and what deadlocks even then runs in transactions of its own. All of this is allowed because operations may be
run again until they are committed.

A connection that is lost before the COMMIT has committed nothing, so the batch is run again on the next one. If it is
lost during the COMMIT, the database is asked afterwards what became of the transaction (`txid_status`): no write is
answered for that was not committed, and none is done twice.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any  # Any: results of operations of every type share one queue

import structlog
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from flyte_binary.db.database import Operation, Publish
from flyte_binary.db.postgres.trouble import first_line, lost_connection, try_again
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.errors import Unavailable

log = structlog.get_logger(__name__)

BATCH_LIMIT = 256
PATIENCE_SECONDS = 20.0
"""How long a write waits for a database that is away."""
_TRIES = 5
_PAUSE_SECONDS = (0.05, 2.0)

Changes = set[tuple[topics.Topic, topics.Key]]


@dataclass(frozen=True, slots=True)
class Job:
    operation: Operation[Any]
    future: asyncio.Future[Any]
    order: tuple[str, ...]
    """Operations of one batch run in this order, so that two batches take their locks in the same one."""
    until: float
    """On the loop's clock: when whoever asked gets `Unavailable`."""


@dataclass(slots=True)
class _Outcome:
    job: Job
    result: Any = None
    error: BaseException | None = None


class _ConnectionLost(Exception):
    """Nothing of the batch is committed."""


class _Failed(Exception):
    """One operation of a bare batch has failed."""


class Writer:
    def __init__(self, engine: AsyncEngine, publish: Publish, name: str) -> None:
        self._engine = engine
        self._publish = publish
        self._jobs: asyncio.Queue[Job | None] = asyncio.Queue()
        self._connection: AsyncConnection | None = None
        self._task = asyncio.create_task(self._run(), name=name)

    def __len__(self) -> int:
        return self._jobs.qsize()

    def put(self, job: Job) -> None:
        self._jobs.put_nowait(job)

    async def close(self) -> None:
        """Commit what is waiting, then let go of the connection."""
        self._jobs.put_nowait(None)
        await self._task

    async def _run(self) -> None:
        last = False
        while not last:
            job = await self._jobs.get()
            if job is None:
                break
            batch = [job]
            last = self._drain_into(batch)
            batch.sort(key=lambda job: job.order)
            await self._commit(batch)
        await self._let_go()

    def _drain_into(self, batch: list[Job]) -> bool:
        """Take what waits, up to the limit; True if the end mark was among it."""
        while len(batch) < BATCH_LIMIT and not self._jobs.empty():
            job = self._jobs.get_nowait()
            if job is None:
                return True
            batch.append(job)
        return False

    async def _commit(self, batch: list[Job]) -> None:
        """Until everyone in the batch is answered, whatever happens."""
        pause = _PAUSE_SECONDS[0]
        while batch := self._still_waiting(batch):
            try:
                await self._commit_somehow(batch)
                return
            except _ConnectionLost as lost:
                log.warning("the database is away", reason=str(lost), writes=len(batch))
                await self._let_go()
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # no secret
                pause = min(pause * 2, _PAUSE_SECONDS[1])
            except Exception as error:
                log.exception("the database did not commit", writes=len(batch))
                await self._let_go()
                for job in batch:
                    _fail(job, Unavailable(f"the database did not commit: {error}"))
                return

    def _still_waiting(self, batch: list[Job]) -> list[Job]:
        now = asyncio.get_running_loop().time()
        for job in batch:
            if job.until <= now:
                _fail(job, Unavailable("the database cannot be reached; nothing was written, try again"))
        return [job for job in batch if not job.future.done()]

    async def _commit_somehow(self, batch: list[Job]) -> None:
        try:
            await self._transaction(batch, _run_bare)
            return
        except _Failed:
            pass
        try:
            await self._transaction(batch, _run_guarded)
            return
        except _Failed:
            pass
        for job in batch:
            await self._alone(job)

    async def _alone(self, job: Job) -> None:
        """In a transaction of its own, a few times."""
        for _ in range(_TRIES - 1):
            try:
                await self._transaction([job], _run_guarded)
                return
            except _Failed:
                await asyncio.sleep(random.uniform(0.01, 0.05))  # no secret
        try:
            await self._transaction([job], _run_guarded)
        except _Failed as error:
            _fail(job, Unavailable(f"the database is too busy with others that change the same: {error.__cause__}"))

    async def _transaction(self, batch: list[Job], run: _Run) -> None:
        """Raises `_Failed` or `_ConnectionLost`, after both of which nothing is committed."""
        changes: Changes = set()
        try:
            connection = await self._connected()
            raw = await _driver(connection)
            await raw.execute("BEGIN")
            outcomes = await connection.run_sync(run, batch, changes)
            transaction: int | None = await raw.fetchval("SELECT txid_current_if_assigned()")
        except Exception as error:
            if lost_connection(error):
                raise _ConnectionLost(first_line(error)) from error
            await self._roll_back()
            raise _Failed(str(error)) from error
        await self._end(raw, transaction)
        if changes:
            self._publish(changes)
        for outcome in outcomes:
            _answer(outcome)

    async def _end(self, raw: Any, transaction: int | None) -> None:  # Any: asyncpg has no types
        """COMMIT. Raises as `_transaction` does, and `Unavailable` if what became of it cannot be found out."""
        try:
            await raw.execute("COMMIT")
        except Exception as error:
            if not lost_connection(error):
                await self._roll_back()
                raise _Failed(str(error)) from error
            if transaction is not None and not await self._was_committed(transaction):
                raise _ConnectionLost(first_line(error)) from error

    async def _was_committed(self, transaction: int) -> bool:
        """Raises `Unavailable` if the database does not come back in time."""
        log.warning("the connection was lost during a commit; asking what became of it")
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    await self._let_go()
                    try:
                        raw = await _driver(await self._connected())
                        status = await raw.fetchval("SELECT txid_status($1)", transaction)
                    except Exception as error:
                        if not lost_connection(error):
                            raise
                        status = "in progress"
                    if status != "in progress":
                        return status == "committed"
                    await asyncio.sleep(_PAUSE_SECONDS[0])
        except TimeoutError as error:
            raise Unavailable("the database went away during a commit: look whether the change was made") from error

    async def _connected(self) -> AsyncConnection:
        if self._connection is None:
            self._connection = await self._engine.connect()
        return self._connection

    async def _roll_back(self) -> None:
        if self._connection is not None:
            try:
                await (await _driver(self._connection)).execute("ROLLBACK")
            except Exception as error:  # noqa: BLE001  # a connection that cannot even do this is given up
                log.warning("the database did not roll back", error=str(error))
                await self._let_go()

    async def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            async with asyncio.timeout(1):
                await connection.invalidate()
                await connection.close()
        except Exception as error:  # noqa: BLE001  # it is gone either way
            log.debug("closing a connection", error=str(error))


_Run = Callable[[Connection, list[Job], Changes], list[_Outcome]]


async def _driver(connection: AsyncConnection) -> Any:  # Any: asyncpg has no types
    return (await connection.get_raw_connection()).driver_connection


def _run_bare(connection: Connection, batch: list[Job], changes: Changes) -> list[_Outcome]:
    outcomes: list[_Outcome] = []
    for job in batch:
        tx = Transaction(connection)
        outcomes.append(_Outcome(job, result=job.operation(tx)))
        changes |= tx.changes
    return outcomes


def _run_guarded(connection: Connection, batch: list[Job], changes: Changes) -> list[_Outcome]:
    outcomes: list[_Outcome] = []
    for job in batch:
        tx = Transaction(connection)
        connection.exec_driver_sql("SAVEPOINT operation")
        try:
            result = job.operation(tx)
        except Exception as error:
            if lost_connection(error) or try_again(error):
                raise
            connection.exec_driver_sql("ROLLBACK TO SAVEPOINT operation")
            outcomes.append(_Outcome(job, error=error))
        else:
            outcomes.append(_Outcome(job, result=result))
            changes |= tx.changes
        connection.exec_driver_sql("RELEASE SAVEPOINT operation")
    return outcomes


def _answer(outcome: _Outcome) -> None:
    if outcome.job.future.done():
        return
    if outcome.error is not None:
        outcome.job.future.set_exception(outcome.error)
    else:
        outcome.job.future.set_result(outcome.result)


def _fail(job: Job, error: Exception) -> None:
    if not job.future.done():
        job.future.set_exception(error)
