"""Puts actions into the database as the rest of the server would, and moves them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flyteidl2.core import execution_pb2

from flyte_binary.db import moves
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.action_events import make_event
from flyte_binary.domain.ids import ActionId, RunId, TaskId
from flyte_binary.domain.phases import Phase, is_terminal
from flyte_binary.runs.view.action import TASK
from tests.rpc.runs.conftest import Server
from tests.rpc.runs.messages import create


def run_of(name: str) -> RunId:
    return RunId("flytesnacks", "development", name)


async def started(server: Server, name: str, **more: Any) -> ActionId:
    """A run through CreateRun."""
    await server.runs.create_run(create(name, **more))
    return run_of(name).root()


async def add(server: Server, action: ActionId, phase: Phase = Phase.QUEUED, **more: Any) -> ActionRow:
    """An action as it is stored, a child of the root unless it says otherwise."""
    now = server.clock.now()
    values: dict[str, Any] = {
        "id": action,
        "parent": None if action.is_root else "a0",
        "phase": phase,
        "action_type": TASK,
        "task": TaskId(action.project, action.domain, "env.leaf", "v1"),
        "task_type": "python",
        "short_name": "leaf",
        "function_name": "env.leaf",
        "search_name": "env.leaf",
        "created_at": now,
        "queued_at": now,
        "updated_at": now,
        "ended_at": now if is_terminal(phase) else None,
        **more,
    }
    row = ActionRow(**values)

    def insert(tx: Transaction) -> None:
        assert tx.actions.insert(row)
        tx.changed_action(row.id, row.parent)

    await server.database.write(insert)
    return row


async def to(server: Server, action: ActionId, phase: Phase, *, error: str = "", **event: Any) -> None:
    """One move with its event, as the executor makes them."""
    failure = execution_pb2.ExecutionError(code="E", message=error, kind=execution_pb2.ExecutionError.USER)
    now = server.clock.now()

    def move(tx: Transaction) -> None:
        row = tx.actions.get(action)
        assert row is not None
        made = make_event(action, row.attempts, phase, at=now, error=failure if error else None, **event)
        if is_terminal(phase):
            assert moves.finish(tx, row, phase, at=now, event=made, error=failure if error else None)
        else:
            assert moves.move(tx, row, phase, at=now, event=made)

    await server.database.write(move)


async def stored(server: Server, action: ActionId) -> ActionRow:
    row = await server.database.read(lambda tx: tx.actions.get(action))
    assert row is not None
    return row


def at(row: ActionRow, moment: int) -> ActionRow:
    return replace(row, created_at=moment)
