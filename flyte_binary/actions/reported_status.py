"""The write behind UpdateActionStatus: a report from an executor outside this server becomes moves of the action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast  # Any: column values of one row have many types

from flyteidl2.core import execution_pb2
from flyteidl2.workflow import internal_run_service_pb2 as internal_pb2
from flyteidl2.workflow import run_definition_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from flyte_binary.actions.status_reports import route
from flyte_binary.db import moves
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import locations
from flyte_binary.domain.errors import InvalidArgument, NotFound
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import SUCCESSFUL, Phase, is_terminal
from flyte_binary.domain.timestamps import proto_to_micros
from flyte_binary.rpc.require import require_action_id

_LARGEST_ATTEMPT = 2**31 - 1
_LAST_SECOND = 253_402_300_799
"""Of the year 9999, where protobuf's timestamps end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A checked UpdateActionStatusRequest; times are microseconds since the epoch. Zeros say nothing."""

    action: ActionId
    phase: Phase
    attempt: int
    cache_status: int
    started_at: int | None
    ended_at: int | None
    value: bytes | None
    """`core.Literal`: what a condition was signalled with."""
    principal: bytes | None
    """`common.EnrichedIdentity`: who signalled or aborted."""
    abort_reason: str


def report_from_request(request: internal_pb2.UpdateActionStatusRequest) -> Report:
    """Raises `InvalidArgument`."""
    action = require_action_id(request.action_id, "action_id")
    if not request.HasField("status"):
        raise InvalidArgument("status is required")
    status = request.status
    if status.phase not in set(Phase):
        raise InvalidArgument(f"status.phase: there is no phase {status.phase}")
    if status.attempts > _LARGEST_ATTEMPT:
        raise InvalidArgument(f"status.attempts must be at most {_LARGEST_ATTEMPT}")
    return Report(
        action=action,
        phase=Phase(status.phase),
        attempt=status.attempts,
        cache_status=int(status.cache_status),
        started_at=_micros(status.start_time, "status.start_time") if status.HasField("start_time") else None,
        ended_at=_micros(status.end_time, "status.end_time") if status.HasField("end_time") else None,
        value=request.output.SerializeToString(deterministic=True) if request.HasField("output") else None,
        principal=request.principal.SerializeToString() if request.HasField("principal") else None,
        abort_reason=request.abort_reason,
    )


def apply_report(tx: Transaction, report: Report, *, at: int) -> None:
    """Late reports are dropped without a word. Raises `NotFound`."""
    tx.actions.lock(report.action.run_id.root())
    row = tx.actions.get(report.action)
    if row is None:
        raise NotFound(f"action_id: action {report.action} does not exist")
    steps = route(row.phase, row.attempts, report.phase or row.phase, report.attempt)
    if steps is None:
        return
    changes = _changes(tx, row, report)
    if not steps:
        if changes and tx.actions.update(row.id, at=at, **changes):
            tx.changed_action(row.id, row.parent)
        return
    for step in steps:
        _take(tx, row, step, report, changes, at=at)
        row = tx.actions.get(row.id) or row


def _take(
    tx: Transaction,
    row: ActionRow,
    step: Phase,
    report: Report,
    changes: dict[str, Any],  # column -> value
    *,
    at: int,
) -> None:
    if step == Phase.ABORTED:
        moves.abort(
            tx, row, at=at, reason=report.abort_reason or "aborted by its executor", aborted_by=report.principal
        )
        return
    if not is_terminal(step):
        if step == Phase.QUEUED:
            changes = {**changes, "queued_at": at}
        moves.move(tx, row, step, at=at, **changes)
        return
    ended_at = max(report.ended_at if report.ended_at is not None else at, row.created_at)
    attempt = int(changes.get("attempts", row.attempts))
    error = _error_of(tx, row.id, attempt) if step == Phase.FAILED else None
    if step in SUCCESSFUL and not row.output_uri:
        changes = {**changes, "output_uri": _output_uri(tx, row, attempt)}
    moves.finish(tx, row, step, at=at, error=error, ended_at=ended_at, **changes)


def _changes(tx: Transaction, row: ActionRow, report: Report) -> dict[str, Any]:  # column -> value
    changes: dict[str, Any] = {}
    if report.attempt > row.attempts:
        changes["attempts"] = report.attempt
    if report.cache_status not in (0, row.cache_status):
        changes["cache_status"] = report.cache_status
    if report.value is not None:
        changes["value"] = report.value
    if report.principal is not None and report.phase != Phase.ABORTED:
        changes["signalled_by"] = report.principal
    if report.started_at is not None and report.started_at < row.created_at:
        started_at = _not_before_parent(tx, row, report.started_at)
        if started_at < row.created_at:
            changes["created_at"] = started_at
    return changes


def _not_before_parent(tx: Transaction, row: ActionRow, moment: int) -> int:
    """Views list by creation, parents first; an outside clock must not turn that round. A root stays where it is."""
    parent = None if row.parent_id is None else tx.actions.get(row.parent_id)
    return row.created_at if parent is None else max(moment, parent.created_at + 1)


def _events(tx: Transaction, action: ActionId, attempt: int) -> list[run_definition_pb2.ActionEvent]:
    """Newest first."""
    found = tx.events.of_attempt(action, attempt)
    return [run_definition_pb2.ActionEvent.FromString(row.info) for row in reversed(found)]


def _error_of(tx: Transaction, action: ActionId, attempt: int) -> execution_pb2.ExecutionError | None:
    """A status carries no error; the event of the same attempt does."""
    for event in _events(tx, action, attempt):
        if event.HasField("error_info"):
            info = event.error_info
            kind = cast("execution_pb2.ExecutionError.ErrorKind", int(info.kind))
            return execution_pb2.ExecutionError(code=info.code, message=info.message, kind=kind)
    return None


def _output_uri(tx: Transaction, row: ActionRow, attempt: int) -> str:
    """The folder of the outputs, as the parent's watch shows it: from the events, else where the layout puts it."""
    if row.action_type != run_definition_pb2.ACTION_TYPE_TASK:
        return ""
    for event in _events(tx, row.id, attempt):
        if event.outputs.output_uri:
            return event.outputs.output_uri.removesuffix(f"/{locations.OUTPUTS}")
    root = tx.actions.get(row.run_id.root())
    base = row.run_output_base or (root.run_output_base if root is not None else "")
    return locations.attempt_prefix(base, row.id.name, attempt) if base else ""


def _micros(stamp: Timestamp, field: str) -> int:
    if not 0 <= stamp.seconds <= _LAST_SECOND:
        raise InvalidArgument(f"{field} must lie between the years 1970 and 9999")
    return proto_to_micros(stamp)
