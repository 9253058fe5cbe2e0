"""Moves of actions with all that belongs to them, in the transaction of the caller.

Each writes the row, its event and the hints together, so that no reader ever sees a terminal row
without its last event or the other way round.
"""

from __future__ import annotations

from typing import Any  # column values of one row have many types

from flyteidl2.core import execution_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.db.rows import ActionRow, EventRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.action_events import make_event
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.timestamps import proto_to_micros


def record(tx: Transaction, event: run_definition_pb2.ActionEvent) -> None:
    action = ActionId.from_proto(event.id)
    row = EventRow(
        action=action,
        attempt=event.attempt,
        phase=int(event.phase),
        version=event.version,
        info=event.SerializeToString(),
        created_at=proto_to_micros(event.reported_time),
    )
    tx.events.record([row])


def move(
    tx: Transaction,
    row: ActionRow,
    target: Phase,
    *,
    at: int,
    event: run_definition_pb2.ActionEvent | None = None,
    wake: bool = True,
    **changes: Any,  # column -> value
) -> bool:
    """Advance `row` if it is still as it was read; False means that somebody was faster.

    `wake=False`: the executor's pass over this action goes on by itself (see `changed_action`).
    """
    if not tx.actions.advance(row.id, target, at=at, version=row.version, **changes):
        return False
    if event is not None:
        record(tx, event)
    # A parent waits for the end; that its child is about to start is news for people only.
    parent = None if target is Phase.INITIALIZING else row.parent
    tx.changed_action(row.id, parent, wake=wake)
    return True


def finish(
    tx: Transaction,
    row: ActionRow,
    target: Phase,
    *,
    at: int,
    event: run_definition_pb2.ActionEvent | None = None,
    error: execution_pb2.ExecutionError | None = None,
    wake: bool = True,
    **changes: Any,  # column -> value
) -> bool:
    """End an action: its reservations are given back and what it left unfinished goes with it."""
    if error is not None:
        changes["error"] = error.SerializeToString()
    if not move(tx, row, target, at=at, event=event, wake=wake, **changes):
        return False
    release_reservations(tx, row.id)
    abort_descendants(tx, row, at=at)
    return True


def abort(tx: Transaction, row: ActionRow, *, at: int, reason: str, aborted_by: bytes | None = None) -> bool:
    """Mark an action and its whole unfinished subtree; False if it had ended already."""
    marked = tx.actions.mark_aborted(row.run_id, [row.id.name], at=at, reason=reason, aborted_by=aborted_by)
    if marked:
        _aborted(tx, row, at=at, reason=reason)
    abort_descendants(tx, row, at=at)
    return bool(marked)


def abort_descendants(tx: Transaction, row: ActionRow, *, at: int) -> None:
    """Until none is left: a child whose Enqueue holds its parent's row is there when that row has been marked."""
    names = tx.actions.unfinished_below(row.id)
    while names:
        for name in tx.actions.mark_aborted(row.run_id, names, at=at, reason=None):
            child = tx.actions.get(row.run_id.action(name))
            if child is not None:
                _aborted(tx, child, at=at, reason="its parent ended")
        names = tx.actions.unfinished_children(row.run_id, names)


def release_reservations(tx: Transaction, action: ActionId) -> None:
    for key in tx.cache.release_all(reservation_owner(action)):
        tx.changed(topics.CACHE, (key,))


def reservation_owner(action: ActionId) -> str:
    return f"action:{action}"


def _aborted(tx: Transaction, row: ActionRow, *, at: int, reason: str) -> None:
    event = make_event(row.id, row.attempts, Phase.ABORTED, at=at, version=row.version, message=reason)
    record(tx, event)
    release_reservations(tx, row.id)
    tx.changed_action(row.id, row.parent)
