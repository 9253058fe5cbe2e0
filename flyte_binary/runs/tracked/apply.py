"""What a report does to its action: events are kept, and the newest of them moves the row.

A client reports each state once, in order, and repeats what was not acknowledged. An attempt that failed is reported as
the failure of the action, because the client cannot say whether another one follows; a later report of the same action
therefore opens it again, which for no other kind of action is possible. What was aborted here by a user stays so.
"""

from __future__ import annotations

from typing import Any, cast  # any: column values of one row have many types

from flyteidl2.core import execution_pb2

from flyte_binary.db import moves
from flyte_binary.db.rows import ActionRow, EventRow
from flyte_binary.db.tasks import digest_of
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import locations
from flyte_binary.domain.errors import Aborted, InvalidArgument, NotFound
from flyte_binary.domain.phases import Phase, can_move, is_terminal
from flyte_binary.runs.tracked.reports import Report
from flyte_binary.runs.tracked.rows import new_row
from flyte_binary.runs.view.action import TASK


def apply(tx: Transaction, report: Report, uploads: str, *, at: int) -> None:
    """The caller holds the row of the run's root. Whatever is raised is raised before anything is written.

    Raises `NotFound` for a parent that was not reported, `InvalidArgument` for a first report that lacks something, and
    `Aborted` once the run has been aborted.
    """
    known = tx.events.of_action(report.action)
    if any((row.attempt, row.phase, row.version) == _key(report) for row in known):
        return
    row = tx.actions.get(report.action)
    _refuse_if_aborted(tx, report)
    if row is None:
        row = _insert(tx, report, uploads, at=at)
    _record(tx, report, at=at)
    newest = max(((e.attempt, e.version) for e in known if e.phase != Phase.ABORTED), default=(0, 0))
    if (report.attempt, report.version) >= newest:
        _move(tx, row, report, at=at)
    tx.changed_action(row.id, row.parent)


def _key(report: Report) -> tuple[int, int, int]:
    return report.attempt, int(report.event.phase), report.version


def _refuse_if_aborted(tx: Transaction, report: Report) -> None:
    root = tx.actions.get(report.action.run_id.root())
    if root is not None and root.phase == Phase.ABORTED and report.phase != Phase.ABORTED:
        raise Aborted(f"run {root.run_id} was aborted: {root.abort_reason or 'no reason given'}")


def _insert(tx: Transaction, report: Report, uploads: str, *, at: int) -> ActionRow:
    if not report.parent:
        raise InvalidArgument(f"parent_name is required in the first report of action {report.action}")
    parent = tx.actions.get(report.action.run_id.action(report.parent))
    if parent is None:
        raise NotFound(f"parent_name: action {report.parent!r} of run {report.action.run_id} was not reported yet")
    row, spec = new_row(report, parent, uploads, at=at)
    digest, body = digest_of(spec)
    tx.actions.insert(row)
    tx.specs.put(digest, body, at=at)
    return row


def _record(tx: Transaction, report: Report, *, at: int) -> None:
    event = report.event
    row = EventRow(
        action=report.action,
        attempt=report.attempt,
        phase=int(event.phase),
        version=report.version,
        info=event.SerializeToString(),
        created_at=at,
    )
    tx.events.record([row])


def _move(tx: Transaction, row: ActionRow, report: Report, *, at: int) -> None:
    if not is_terminal(report.phase) and _parent_ended(tx, row):
        return
    if row.terminal:
        if row.phase == report.phase or not _may_go_on(row):
            return
        row = _opened(tx, row, report, at=at)
    changes = _changes(row, report)
    if report.phase == row.phase:
        tx.actions.update(row.id, at=at, **changes)
    elif not can_move(row.phase, report.phase):
        return
    elif report.phase == Phase.ABORTED:
        reason = report.event.error_info.message or "aborted by its client"
        moves.abort(tx, row, at=at, reason=reason)
    elif is_terminal(report.phase):
        _end(tx, row, report, changes, at=at)
    else:
        moves.move(tx, row, report.phase, at=at, **changes)


def _parent_ended(tx: Transaction, row: ActionRow) -> bool:
    """Nothing unfinished hangs below what has ended."""
    parent = None if row.parent_id is None else tx.actions.get(row.parent_id)
    return parent is not None and parent.terminal


def _may_go_on(row: ActionRow) -> bool:
    """After a failed attempt; and what went with its parent, which is perhaps tried again."""
    went_with_parent = row.phase == Phase.ABORTED and row.abort_reason is None
    return went_with_parent or row.phase in (Phase.FAILED, Phase.TIMED_OUT)


def _opened(tx: Transaction, row: ActionRow, report: Report, *, at: int) -> ActionRow:
    tx.actions.supersede(row.run_id, [row.id.name], at=at)
    tx.actions.reopen(row.id, at=at, attempts=max(row.attempts, report.attempt))
    return tx.actions.get(row.id) or row


def _end(
    tx: Transaction,
    row: ActionRow,
    report: Report,
    changes: dict[str, Any],  # column -> value
    *,
    at: int,
) -> None:
    error = None
    if report.phase in (Phase.FAILED, Phase.TIMED_OUT) and report.event.HasField("error_info"):
        info = report.event.error_info
        kind = cast("execution_pb2.ExecutionError.ErrorKind", int(info.kind))
        error = execution_pb2.ExecutionError(code=info.code, message=info.message, kind=kind)
    ended = at if report.ended_at is None else min(at, report.ended_at)
    moves.finish(tx, row, report.phase, at=at, error=error, ended_at=max(ended, row.created_at), **changes)


def _changes(row: ActionRow, report: Report) -> dict[str, Any]:  # column -> value
    changes: dict[str, Any] = {}
    if report.attempt > row.attempts:
        changes["attempts"] = report.attempt
    if report.cache_status:
        changes["cache_status"] = report.cache_status
    if report.output_uri:
        # Of a task the row has the folder.
        folder = report.output_uri.removesuffix(f"/{locations.OUTPUTS}")
        changes["output_uri"] = folder if row.action_type == TASK else report.output_uri
    return changes
