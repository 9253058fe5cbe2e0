"""What one server commits the hubs of the others hear, also after a connection was lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text

from flyte_binary.db.migrate import upgrade_on
from flyte_binary.db.postgres.channel import PostgresChannel
from flyte_binary.db.postgres.connect import Address, connect, ensure_database, make_engine
from flyte_binary.db.postgres.database import PostgresDatabase
from flyte_binary.db.recent import RecentChanges
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.phases import Phase
from flyte_binary.live.bridge import Bridge
from flyte_binary.live.hub import Hub
from tests.postgres_server import PostgresServer

DEADLINE_SECONDS = 15
RUN = RunId("p", "d", "r1")


class Node:
    def __init__(self, address: Address) -> None:
        self.hub = Hub()
        self.bridge = Bridge(self.hub, PostgresChannel(address))
        self.database = PostgresDatabase(address, self.bridge.publish, readers=2)


@asynccontextmanager
async def node(address: Address) -> AsyncIterator[Node]:
    made = Node(address)
    await made.bridge.start(RecentChanges(made.database))
    try:
        yield made
    finally:
        await made.bridge.close()
        await made.database.close()


@pytest.fixture
async def address(postgres: PostgresServer) -> Address:
    address = Address(url=postgres.url("flyte"))
    await ensure_database(address)
    engine = make_engine(address)
    async with engine.connect() as connection:
        await connection.run_sync(upgrade_on)
    await engine.dispose()
    return address


def insert(tx: Transaction, name: str) -> None:
    now = time.time_ns() // 1000
    times = {"created_at": now, "updated_at": now, "queued_at": now}
    row = ActionRow(id=RUN.action(name), parent=None, phase=Phase.QUEUED, action_type=1, **times)
    assert tx.actions.insert(row)
    tx.changed_action(row.id, "a0")


async def heard(node: Node, names: set[str]) -> None:
    with node.hub.subscribe(topics.run(RUN)) as changes:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while names:
                names -= {name for (name,) in await changes.wait()}


async def test_the_other_server_hears_of_every_change(address: Address) -> None:
    async with node(address) as one, node(address) as two:
        names = {f"a{number}" for number in range(500)}
        hearing = [asyncio.create_task(heard(each, set(names))) for each in (one, two)]
        await asyncio.sleep(0)
        await asyncio.gather(*(one.database.write(lambda tx, name=name: insert(tx, name)) for name in names))
        await asyncio.gather(*hearing)


async def test_what_changed_while_a_server_could_not_listen_is_told_afterwards(
    address: Address, postgres: PostgresServer
) -> None:
    async with node(address) as one, node(address) as two:
        hearing = asyncio.create_task(heard(two, {"late"}))
        await asyncio.sleep(0)
        admin = await connect(address, application="admin")
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%notifications'"
        )
        await admin.close()
        await one.database.write(lambda tx: insert(tx, "late"))
        await hearing


async def test_what_a_server_committed_and_died_before_telling_is_found(address: Address) -> None:
    async with node(address) as two:
        silent = PostgresDatabase(address, lambda _changes: None)
        hearing = asyncio.create_task(heard(two, {"untold"}))
        await asyncio.sleep(0)
        await silent.write(lambda tx: insert(tx, "untold"))
        await silent.close()
        two.bridge.missed_something()
        await hearing


async def test_nothing_is_told_again_that_was_heard(address: Address) -> None:
    """A look at the database now and then must not wake everybody for nothing."""
    async with node(address) as one:
        await one.database.write(lambda tx: insert(tx, "a1"))
        recent = await RecentChanges(one.database)()

        assert (topics.run(RUN), ("a1",)) in recent
        assert recent <= one.bridge._heard[0]


async def test_notifications_outlive_the_database(address: Address, postgres: PostgresServer) -> None:
    async with node(address) as one, node(address) as two:
        await one.database.write(lambda tx: tx.connection.execute(text("SELECT 1")))
        await asyncio.to_thread(postgres.stop)
        await asyncio.to_thread(postgres.start)
        hearing = asyncio.create_task(heard(two, {"after"}))
        await asyncio.sleep(0)
        await one.database.write(lambda tx: insert(tx, "after"))
        await hearing
