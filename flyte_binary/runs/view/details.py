"""`ActionDetails` and `RunDetails` from the row of an action, its events and its spec."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flyteidl2.common import identity_pb2
from flyteidl2.core import execution_pb2, literals_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.action_events import error_info
from flyte_binary.domain.phases import Phase
from flyte_binary.runs.view.action import CONDITION, condition_of, metadata_of, run_spec_of, status_of
from flyte_binary.runs.view.attempts import attempts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFacts:
    """All that is stored of one action, read in one snapshot."""

    row: ActionRow
    events: tuple[run_definition_pb2.ActionEvent, ...] = ()
    spec: bytes | None = None
    """`task.TaskSpec` of a task, `task.TraceSpec` of a trace."""


def run_details_of(facts: ActionFacts) -> run_definition_pb2.RunDetails:
    return run_definition_pb2.RunDetails(run_spec=run_spec_of(facts.row), action=action_details_of(facts))


def action_details_of(facts: ActionFacts) -> run_definition_pb2.ActionDetails:
    row = facts.row
    attempts = attempts_of(row, facts.events)
    details = run_definition_pb2.ActionDetails(
        id=row.id.to_proto(), metadata=metadata_of(row), status=status_of(row), attempts=attempts
    )
    _add_spec(details, facts)
    _add_result(details, row, attempts)
    return details


def _add_spec(details: run_definition_pb2.ActionDetails, facts: ActionFacts) -> None:
    match facts.row.action_type:
        case run_definition_pb2.ACTION_TYPE_TASK:
            details.task.MergeFrom(task_definition_pb2.TaskSpec.FromString(facts.spec or b""))
            details.task.SetInParent()
        case run_definition_pb2.ACTION_TYPE_TRACE:
            details.trace.CopyFrom(_trace_spec(facts))
        case run_definition_pb2.ACTION_TYPE_CONDITION:
            details.condition.CopyFrom(condition_of(facts.row))
        case _:
            pass


def _trace_spec(facts: ActionFacts) -> task_definition_pb2.TraceSpec:
    if facts.spec is not None:
        return task_definition_pb2.TraceSpec.FromString(facts.spec)
    return run_definition_pb2.TraceAction.FromString(facts.row.detail or b"").spec


def _add_result(
    details: run_definition_pb2.ActionDetails,
    row: ActionRow,
    attempts: Iterable[run_definition_pb2.ActionAttempt],
) -> None:
    """How the action ended, if it did other than well, and the value of a condition."""
    if row.phase in (Phase.FAILED, Phase.TIMED_OUT):
        found = _error_of(row, attempts)
        if found is not None:
            details.error_info.CopyFrom(found)
        return
    if row.phase == Phase.ABORTED:
        details.abort_info.reason = row.abort_reason or ""
        if row.aborted_by is not None:
            details.abort_info.aborted_by.CopyFrom(identity_pb2.EnrichedIdentity.FromString(row.aborted_by))
        details.abort_info.SetInParent()
        return
    if row.action_type == CONDITION and row.value is not None:
        details.signal_info.output.CopyFrom(literals_pb2.Literal.FromString(row.value))
        if row.signalled_by is not None:
            details.signal_info.signalled_by.CopyFrom(identity_pb2.EnrichedIdentity.FromString(row.signalled_by))


def _error_of(
    row: ActionRow, attempts: Iterable[run_definition_pb2.ActionAttempt]
) -> run_definition_pb2.ErrorInfo | None:
    """The final error; without one that of the last attempt that has any, whatever `status.attempts` says."""
    if row.error is not None:
        error = execution_pb2.ExecutionError.FromString(row.error)
        found = error_info(error)
        if error.HasField("gpu_fault"):
            found.gpu_fault.CopyFrom(error.gpu_fault)
        return found
    of_attempts = [attempt.error_info for attempt in attempts if attempt.HasField("error_info")]
    if of_attempts:
        return of_attempts[-1]
    return run_definition_pb2.ErrorInfo() if row.phase == Phase.FAILED else None
