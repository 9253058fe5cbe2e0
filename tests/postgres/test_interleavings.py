"""Two servers change one run at the same moment; SQLite's single writer would hide what can go wrong.

One transaction is stopped in the middle (its operation waits for the test, as it runs in the test's own loop through a
second database), another comes in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.enqueue import insert_action
from flyte_binary.db import moves
from flyte_binary.db.database import Database
from flyte_binary.db.postgres.connect import Address, make_engine
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import Aborted
from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.domain.phases import Phase
from tests.db_fixtures import POSTGRES, Storage
from tests.fakes.manual_clock import ManualClock

RUN = RunId("p", "d", "r1")
TASK = run_definition_pb2.ACTION_TYPE_TASK
DEADLINE_SECONDS = 10


def action(name: str, parent: str | None, phase: Phase = Phase.QUEUED) -> ActionRow:
    return ActionRow(
        id=RUN.action(name),
        parent=parent,
        phase=phase,
        action_type=TASK,
        run_output_base="/store/r1",
        created_at=1,
        updated_at=1,
        queued_at=1,
    )


class Open:
    """A transaction of another server, begun and not committed."""

    def __init__(self, url: str) -> None:
        self._engine = make_engine(Address(url=url))

    async def begin(self) -> Open:
        self._connection = await self._engine.connect()
        await self._raw("BEGIN")
        return self

    async def do(self, operation: object) -> None:
        await self._connection.run_sync(lambda inner: operation(Transaction(inner)))  # pyright: ignore

    async def commit(self) -> None:
        await self._raw("COMMIT")
        await self._connection.close()
        await self._engine.dispose()

    async def _raw(self, statement: str) -> None:
        raw = await self._connection.get_raw_connection()
        assert raw.driver_connection is not None
        await raw.driver_connection.execute(statement)


@pytest.fixture
async def stored(tmp_path: Path) -> AsyncIterator[tuple[Database, str]]:
    """A run whose root has a running child `p`, which has a running child `q`."""
    storage = Storage(POSTGRES, tmp_path)
    database = storage.open(lambda _changes: None)
    for name, parent in (("a0", None), ("p", "a0"), ("q", "p")):
        row = action(name, parent, Phase.RUNNING)
        await database.write(lambda tx, row=row: tx.actions.insert(row))
    yield database, storage.url
    await database.close()


async def unfinished(database: Database) -> set[str]:
    rows = await database.read(lambda tx: tx.actions.unfinished_of_run(RUN))
    return {row.id.name for row in rows}


async def finish(database: Database, name: str) -> None:
    def operation(tx: Transaction) -> None:
        row = tx.actions.get(RUN.action(name))
        assert row is not None
        assert moves.finish(tx, row, Phase.SUCCEEDED, at=5)

    await database.write(operation)


async def still_waits(task: asyncio.Task[object]) -> bool:
    done, _ = await asyncio.wait({task}, timeout=0.3)
    return not done


@pytest.mark.parametrize("ends", ["a0", "p", "q"])
async def test_whoever_ends_takes_a_child_along_that_is_just_being_asked_for(
    stored: tuple[Database, str], ends: str
) -> None:
    database, url = stored
    enqueue = await Open(url).begin()
    await enqueue.do(lambda tx: insert_action(tx, action("late", "q"), at=2))
    ending = asyncio.create_task(finish(database, ends))
    assert await still_waits(ending), "the child is not there yet and may still come"
    await enqueue.commit()
    async with asyncio.timeout(DEADLINE_SECONDS):
        await ending

    below = {"a0": set[str](), "p": {"a0"}, "q": {"a0", "p"}}[ends]
    assert await unfinished(database) == below


@pytest.mark.parametrize("ends", ["a0", "p", "q"])
async def test_an_abort_takes_a_child_along_that_is_just_being_asked_for(
    stored: tuple[Database, str], ends: str
) -> None:
    database, url = stored
    enqueue = await Open(url).begin()
    await enqueue.do(lambda tx: insert_action(tx, action("late", "q"), at=2))
    aborting = asyncio.create_task(Aborter(database, ManualClock()).abort(RUN.action(ends), "enough", None))
    assert await still_waits(aborting)
    await enqueue.commit()
    async with asyncio.timeout(DEADLINE_SECONDS):
        await aborting

    assert await unfinished(database) == {"a0": set[str](), "p": {"a0"}, "q": {"a0", "p"}}[ends]


async def test_a_child_that_is_asked_for_while_the_abort_commits_is_refused(stored: tuple[Database, str]) -> None:
    database, url = stored
    abort = await Open(url).begin()

    def operation(tx: Transaction) -> None:
        root = tx.actions.lock(RUN.root())
        assert root is not None
        moves.abort(tx, root, at=2, reason="enough")

    await abort.do(operation)
    asking = asyncio.create_task(database.write(lambda tx: insert_action(tx, action("late", "q"), at=3)))
    assert await still_waits(asking)
    await abort.commit()

    with pytest.raises(Aborted):
        async with asyncio.timeout(DEADLINE_SECONDS):
            await asking
    assert await unfinished(database) == set()


async def test_children_of_one_parent_are_taken_in_by_both_servers_at_once(stored: tuple[Database, str]) -> None:
    database, url = stored
    enqueue = await Open(url).begin()
    await enqueue.do(lambda tx: insert_action(tx, action("one", "p"), at=2))
    async with asyncio.timeout(DEADLINE_SECONDS):
        await database.write(lambda tx: insert_action(tx, action("two", "p"), at=2))
    await enqueue.commit()

    assert {"one", "two"} <= await unfinished(database)


async def test_of_two_ends_of_one_action_the_first_to_commit_counts(stored: tuple[Database, str]) -> None:
    database, url = stored
    first = await Open(url).begin()
    key = ActionId("p", "d", "r1", "q")

    def end(tx: Transaction, phase: Phase) -> bool:
        row = tx.actions.get(key)
        assert row is not None
        return moves.finish(tx, row, phase, at=5)

    await first.do(lambda tx: end(tx, Phase.SUCCEEDED))
    second = asyncio.create_task(database.write(lambda tx: end(tx, Phase.FAILED)))
    assert await still_waits(second)
    await first.commit()
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await second is False

    row = await database.read(lambda tx: tx.actions.get(key))
    assert row is not None and row.phase is Phase.SUCCEEDED


async def test_active_are_those_that_run_and_do_not_only_wait(stored: tuple[Database, str]) -> None:
    """What `max_action_concurrency` counts across servers: of a0 > p > q only the innermost computes."""
    database, _ = stored
    assert await database.read(lambda tx: tx.actions.active(RUN)) == 1
    await finish(database, "q")
    assert await database.read(lambda tx: tx.actions.active(RUN)) == 1
    for name in ("x", "y"):
        row = action(name, "p", Phase.INITIALIZING)
        await database.write(lambda tx, row=row: tx.actions.insert(row))
    assert await database.read(lambda tx: tx.actions.active(RUN)) == 2
