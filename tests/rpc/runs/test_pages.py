"""Pages of long lists: nothing is missed or shown twice while a list grows, and each is a range of an index."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from flyteidl2.common import list_pb2
from flyteidl2.workflow import run_service_pb2
from sqlalchemy import text

from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.phases import Phase
from tests.db_fixtures import POSTGRES, SQLITE, Storage
from tests.rpc.runs.conftest import Server

RUN = RunId("flytesnacks", "development", "long")
FIRST, LATER, PAGE = 10_000, 2_000, 200

ROW = ActionRow(
    id=RUN.root(),
    parent=None,
    phase=Phase.RUNNING,
    action_type=1,
    run_output_base="/store/long",
    created_at=1_700_000_000_000_000,
    updated_at=1_700_000_000_000_000,
    queued_at=1_700_000_000_000_000,
)


def child(number: int) -> ActionRow:
    """Of mixed phases, and many made in the same microsecond."""
    at = ROW.created_at + number // 7
    phase = (Phase.SUCCEEDED, Phase.QUEUED, Phase.FAILED, Phase.RUNNING)[number % 4]
    ended = at + 5 if phase in (Phase.SUCCEEDED, Phase.FAILED) else None
    return replace(
        ROW, id=RUN.action(f"c{number}"), parent="a0", phase=phase, created_at=at, updated_at=at, ended_at=ended
    )


async def fill(database: Database, numbers: range) -> None:
    def operation(tx: Transaction, some: range) -> None:
        for number in some:
            assert tx.actions.insert(child(number))

    for start in range(numbers.start, numbers.stop, 500):
        await database.write(lambda tx, start=start: operation(tx, range(start, min(start + 500, numbers.stop))))


SORTS = {
    "as they come": None,
    "oldest first": list_pb2.Sort(key="created_at", direction=list_pb2.Sort.ASCENDING),
    "by end": list_pb2.Sort(key="ended_at", direction=list_pb2.Sort.DESCENDING),
    "by name": list_pb2.Sort(key="name", direction=list_pb2.Sort.DESCENDING),
}


@pytest.mark.parametrize("sort", SORTS)
async def test_ten_thousand_actions_are_paged_while_others_are_made(server: Server, sort: str) -> None:
    await server.database.write(lambda tx: tx.actions.insert(ROW))
    await fill(server.database, range(FIRST))
    growing = asyncio.create_task(fill(server.database, range(FIRST, FIRST + LATER)))
    request = run_service_pb2.ListActionsRequest(run_id=RUN.to_proto())
    request.request.limit = PAGE
    if (by := SORTS[sort]) is not None:
        request.request.sort_by_fields.append(by)
    seen: list[str] = []
    while True:
        page = await server.runs.list_actions(request)
        seen += [action.id.name for action in page.actions]
        if not page.token:
            break
        request.request.token = page.token
        if not growing.done():
            await asyncio.wait({growing}, timeout=0.05)
    await growing

    assert len(seen) == len(set(seen)), "nothing twice"
    assert {f"c{number}" for number in range(FIRST)} <= set(seen), "nothing missed"


PLANS = {
    "runs": (
        "parent IS NULL AND project = 'p' AND domain = 'd'",
        "phase, created_at DESC, run DESC",
        "(created_at, run) < (1700000000000000, 'r')",
        "idx_actions_roots_listed",
    ),
    "actions of a run": (
        "project = 'flytesnacks' AND domain = 'development' AND run = 'long'",
        "phase, created_at DESC, name DESC",
        "(created_at, name) < (1700000000000500, 'c3500')",
        "idx_actions_listed",
    ),
}


@pytest.mark.parametrize("of", PLANS)
async def test_a_late_page_is_a_range_of_an_index(storage: Storage, of: str) -> None:
    database = storage.open(lambda _changes: None)
    await database.write(lambda tx: tx.actions.insert(ROW))
    await fill(database, range(4000))
    if storage.kind == POSTGRES:
        await database.write(lambda tx: tx.connection.execute(text("ANALYZE actions")))
    explain = {SQLITE: "EXPLAIN QUERY PLAN", POSTGRES: "EXPLAIN"}[storage.kind]
    scope, order, behind, index = PLANS[of]
    statement = f"SELECT name FROM actions WHERE {scope} AND phase = 5 AND {behind} ORDER BY {order} LIMIT 101"
    lines = await database.read(lambda tx: tx.connection.execute(text(f"{explain} {statement}")).all())
    await database.close()
    plan = "\n".join(str(line[-1]) for line in lines)

    assert index in plan, plan
    assert "TEMP B-TREE" not in plan and "Sort" not in plan, plan
