"""The row of an action that a client runs and that we hear of for the first time. Pure."""

from __future__ import annotations

from dataclasses import replace

from flyteidl2.core import interface_pb2
from google.protobuf.message import Message

from flyte_binary.db.rows import ActionRow
from flyte_binary.db.tasks import digest_of
from flyte_binary.domain import locations
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import ActionId, ProjectId
from flyte_binary.domain.phases import Phase
from flyte_binary.runs.order import task_id_of
from flyte_binary.runs.tracked.reports import Report
from flyte_binary.runs.view.action import TASK, TRACE


def new_row(report: Report, parent: ActionRow, uploads: str, *, at: int) -> tuple[ActionRow, Message]:
    """The row, and the spec to be stored with it. `uploads` is the folder that clients upload to.

    Raises `InvalidArgument` if the report does not say what the action is.
    """
    started = at if report.started_at is None else min(at, report.started_at)
    # Views list by creation, parents first, whatever the clocks say.
    started = max(started, parent.created_at + 1)
    row = ActionRow(
        id=report.action,
        parent=parent.id.name,
        phase=Phase.QUEUED,
        action_type=TASK,
        action_group=report.group,
        attempts=report.attempt,
        created_at=started,
        updated_at=at,
        queued_at=started,
    )
    if report.trace is not None:
        return _trace_row(row, report, uploads), report.trace.spec
    if report.task is not None:
        return _task_row(row, report, uploads), report.task
    raise InvalidArgument(
        f"action {report.action} is not known yet: its first report says with task or trace what it is"
    )


def _task_row(row: ActionRow, report: Report, uploads: str) -> ActionRow:
    spec = report.task
    assert spec is not None
    task = task_id_of(spec, ProjectId(row.id.project, row.id.domain))
    short_name = spec.short_name or task.name
    return replace(
        row,
        task=task,
        task_type=spec.task_template.type,
        short_name=short_name,
        function_name=task.name,
        environment_name=spec.environment.name,
        search_name=task.name.casefold(),
        spec_digest=digest_of(spec)[0],
        input_uri=_input_uri(row.id, spec.task_template.interface, uploads),
    )


def _trace_row(row: ActionRow, report: Report, uploads: str) -> ActionRow:
    trace = report.trace
    assert trace is not None
    return replace(
        row,
        action_type=TRACE,
        short_name=trace.name,
        function_name=trace.name,
        search_name=trace.name.casefold(),
        spec_digest=digest_of(trace.spec)[0],
        detail=trace.SerializeToString(),
        input_uri=_input_uri(row.id, trace.spec.interface, uploads),
    )


def folder_of(action: ActionId, uploads: str) -> str:
    """Where the SDK uploads what belongs to an action (`flyte/_persistence/_remote_upload.py`)."""
    return locations.join(uploads, action.project, action.domain, "tracked-runs", action.run, action.name)


def _input_uri(action: ActionId, interface: interface_pb2.TypedInterface, uploads: str) -> str:
    """No report tells where the inputs are; they are uploaded to a place that follows from the names."""
    return locations.join(folder_of(action, uploads), locations.INPUTS) if interface.inputs.variables else ""
