"""The database goes away and comes back: nothing that was acknowledged is lost, nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import text

from flyte_binary.db.postgres.connect import Address, connect
from flyte_binary.db.postgres.database import PostgresDatabase
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import Unavailable
from tests.postgres_server import PostgresServer

DEADLINE_SECONDS = 60.0


@asynccontextmanager
async def ledger(postgres: PostgresServer) -> AsyncIterator[PostgresDatabase]:
    """With a counter for each of ten accounts."""
    database = PostgresDatabase(Address(url=postgres.url("postgres")), lambda _changes: None)
    await database.write(
        lambda tx: tx.connection.execute(text("CREATE TABLE accounts (id int PRIMARY KEY, n int NOT NULL)"))
    )
    await database.write(
        lambda tx: tx.connection.execute(text("INSERT INTO accounts SELECT i, 0 FROM generate_series(0, 9) i"))
    )
    try:
        yield database
    finally:
        await database.close()


def add(tx: Transaction, account: int) -> None:
    tx.connection.execute(text(f"UPDATE accounts SET n = n + 1 WHERE id = {account}"))


def total(tx: Transaction) -> int:
    return tx.connection.execute(text("SELECT sum(n) FROM accounts")).scalar_one()


class Load:
    """Clients that write one after the other until told to stop, and count what they were answered."""

    def __init__(self, database: PostgresDatabase, clients: int) -> None:
        self.acknowledged = 0
        self.refused = 0
        self._database = database
        self._going = True
        self._answered = asyncio.Event()
        self._tasks = [asyncio.create_task(self._write(client % 10)) for client in range(clients)]

    async def _write(self, account: int) -> None:
        while self._going:
            try:
                await self._database.write(lambda tx: add(tx, account))
                self.acknowledged += 1
                self._answered.set()
            except Unavailable:
                self.refused += 1
                await asyncio.sleep(0.01)

    async def until(self, acknowledged: int) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while self.acknowledged < acknowledged:
                self._answered.clear()
                await self._answered.wait()

    async def stop(self) -> None:
        self._going = False
        async with asyncio.timeout(DEADLINE_SECONDS):
            await asyncio.gather(*self._tasks)


async def test_what_was_acknowledged_survives_crashes_of_the_database_and_nothing_is_done_twice(
    postgres: PostgresServer,
) -> None:
    async with ledger(postgres) as database:
        load = Load(database, 20)
        for _ in range(4):
            await load.until(load.acknowledged + 200)
            await asyncio.to_thread(postgres.stop)
            await asyncio.to_thread(postgres.start)
        await load.until(load.acknowledged + 200)
        await load.stop()

        assert load.refused == 0, "the database was away for less than a write waits"
        assert await database.read(total) == load.acknowledged


async def test_a_connection_that_is_cut_in_the_middle_costs_no_write(postgres: PostgresServer) -> None:
    admin = await connect(Address(url=postgres.url("postgres")), application="admin")
    async with ledger(postgres) as database:
        load = Load(database, 10)
        for _ in range(20):
            await load.until(load.acknowledged + 20)
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'flyte-binary'"
            )
        await load.stop()
        await admin.close()

        assert load.refused == 0
        assert await database.read(total) == load.acknowledged


async def test_reads_go_on_after_an_outage(postgres: PostgresServer) -> None:
    async with ledger(postgres) as database:
        await database.write(lambda tx: add(tx, 1))
        await asyncio.gather(*(database.read(total) for _ in range(10)))
        await asyncio.to_thread(postgres.stop)
        await asyncio.to_thread(postgres.start)

        assert await asyncio.gather(*(database.read(total) for _ in range(10))) == [1] * 10


async def test_writers_that_lock_each_other_out_all_come_through(postgres: PostgresServer) -> None:
    """Two servers change the same rows in opposite orders."""
    async with ledger(postgres) as database:
        other = PostgresDatabase(Address(url=postgres.url("postgres")), lambda _changes: None)

        def both(tx: Transaction, accounts: tuple[int, int]) -> None:
            for account in accounts:
                add(tx, account)

        writes = [
            each.write(lambda tx, order=order: both(tx, order))
            for _ in range(25)
            for each, order in ((database, (1, 2)), (other, (2, 1)))
        ]
        async with asyncio.timeout(DEADLINE_SECONDS):
            await asyncio.gather(*writes)
        await other.close()

        assert await database.read(total) == 100
