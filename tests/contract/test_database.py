"""What every `Database` keeps, on both of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from sqlalchemy import text

from flyte_binary.db.database import Database
from flyte_binary.db.rows import ProjectRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.errors import NotFound, Unavailable
from flyte_binary.domain.ids import RunId
from tests.db_fixtures import Storage

RUN = RunId("p", "d", "r1")
Changes = set[tuple[topics.Topic, topics.Key]]


@asynccontextmanager
async def opened(storage: Storage, published: list[Changes] | None = None) -> AsyncIterator[Database]:
    database = storage.open((published if published is not None else []).append)
    try:
        yield database
    finally:
        await database.close()


def put(tx: Transaction, name: str) -> None:
    assert tx.projects.insert(ProjectRow(identifier=name, created_at=1, updated_at=1)), f"{name} is there already"
    tx.changed(("projects",), (name,))


def names(tx: Transaction) -> set[str]:
    return set(tx.connection.execute(text("SELECT identifier FROM projects")).scalars())


async def test_what_is_answered_is_there(storage: Storage) -> None:
    async with opened(storage) as database:
        await database.write(lambda tx: put(tx, "a"))

    async with opened(storage) as database:
        assert await database.read(names) == {"a"}


async def test_one_that_fails_does_not_harm_those_it_was_committed_with(storage: Storage) -> None:
    def fail(tx: Transaction) -> None:
        put(tx, "half")
        raise NotFound("no such thing")

    async with opened(storage) as database:
        outcomes = await asyncio.gather(
            *(database.write(lambda tx, name=name: put(tx, name)) for name in "abc"),
            database.write(fail),
            *(database.write(lambda tx, name=name: put(tx, name)) for name in "def"),
            return_exceptions=True,
        )

        assert [type(outcome) for outcome in outcomes].count(NotFound) == 1
        assert [outcome for outcome in outcomes if outcome is None] == [None] * 6
        assert await database.read(names) == set("abcdef")


async def test_a_statement_that_the_database_refuses_is_its_own_callers_error(storage: Storage) -> None:
    def twice(tx: Transaction) -> None:
        for _ in range(2):
            tx.connection.execute(text("INSERT INTO projects (identifier, created_at, updated_at) VALUES ('x', 1, 1)"))

    async with opened(storage) as database:
        outcomes = await asyncio.gather(
            database.write(lambda tx: put(tx, "a")),
            database.write(twice),
            database.write(lambda tx: put(tx, "b")),
            return_exceptions=True,
        )

        assert outcomes[0] is None and outcomes[2] is None
        assert isinstance(outcomes[1], Exception)
        assert await database.read(names) == {"a", "b"}


async def test_hints_come_after_the_commit_and_only_of_what_was_committed(storage: Storage) -> None:
    published: list[Changes] = []

    def fail(tx: Transaction) -> None:
        tx.changed(("projects",), ("never",))
        raise NotFound("no such thing")

    async with opened(storage, published) as database:
        await asyncio.gather(database.write(lambda tx: put(tx, "a")), database.write(fail), return_exceptions=True)
        assert (("projects",), ("a",)) in set().union(*published)
        assert (("projects",), ("never",)) not in set().union(*published)


async def test_writes_of_a_run_are_committed_in_the_order_of_their_calls(storage: Storage) -> None:
    seen: list[int] = []

    async with opened(storage) as database:
        await asyncio.gather(
            *(database.write(lambda tx, number=number: seen.append(number), run=RUN) for number in range(50))
        )

    assert sorted(set(seen), key=seen.index) == list(range(50))


async def test_a_read_sees_one_moment(storage: Storage) -> None:
    async with opened(storage) as database, opened(storage) as other:

        def look_twice(tx: Transaction) -> tuple[set[str], set[str]]:
            before = names(tx)
            written.set()
            loop.call_soon_threadsafe(written.set)
            return before, names(tx)

        loop, written = asyncio.get_running_loop(), asyncio.Event()
        reading = asyncio.create_task(database.read(look_twice))
        await other.write(lambda tx: put(tx, "a"))
        before, after = await reading

        assert before == after


async def test_what_a_read_writes_is_not_kept(storage: Storage) -> None:
    async with opened(storage) as database:
        with suppress(Exception):  # PostgreSQL refuses it at once
            await database.read(lambda tx: put(tx, "a"))
        assert await database.read(names) == set()


async def test_a_cancelled_caller_leaves_the_database_in_order(storage: Storage) -> None:
    async with opened(storage) as database:
        for _ in range(20):
            reading = asyncio.create_task(database.read(names))
            writing = asyncio.create_task(database.write(lambda tx: names(tx)))
            await asyncio.sleep(0)
            reading.cancel()
            writing.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)

        await database.write(lambda tx: put(tx, "a"))
        assert await database.read(names) == {"a"}


async def test_nothing_is_taken_after_the_end(storage: Storage) -> None:
    async with opened(storage) as database:
        pass

    with pytest.raises(Unavailable):
        await database.write(names)
    with pytest.raises(Unavailable):
        await database.read(names)
