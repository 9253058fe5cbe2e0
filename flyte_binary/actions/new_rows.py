"""The rows of new actions: what of a task, a trace or a condition stands in the table. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from flyteidl2.core import execution_pb2, types_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.db.rows import ActionRow
from flyte_binary.db.tasks import digest_of
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import TaskId
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.timestamps import proto_to_micros

TASK, TRACE, CONDITION = (
    run_definition_pb2.ACTION_TYPE_TASK,
    run_definition_pb2.ACTION_TYPE_TRACE,
    run_definition_pb2.ACTION_TYPE_CONDITION,
)
SIGNAL_TYPES = frozenset({types_pb2.BOOLEAN, types_pb2.INTEGER, types_pb2.FLOAT, types_pb2.STRING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A content-addressed spec to be stored with the row, unless this process stored it before."""

    digest: str
    body: bytes


def task_row(row: ActionRow, task: run_definition_pb2.TaskAction) -> tuple[ActionRow, Spec]:
    if not task.HasField("spec") or not task.spec.HasField("task_template"):
        raise InvalidArgument("action.task.spec.task_template is required")
    digest, body = digest_of(task.spec)
    template = task.spec.task_template
    task_id = TaskId(task.id.project, task.id.domain, task.id.name, task.id.version)
    if not task_id.name:
        task_id = TaskId(template.id.project, template.id.domain, template.id.name, template.id.version)
    short_name = task.spec.short_name or task_id.name
    made = replace(
        row,
        task=task_id if task_id.name else None,
        task_type=template.type,
        short_name=short_name,
        function_name=task_id.name,
        environment_name=task.spec.environment.name,
        search_name=short_name.casefold(),
        spec_digest=digest,
        cache_key=task.cache_key.value,
    )
    return made, Spec(digest=digest, body=body)


def trace_row(
    row: ActionRow, trace: run_definition_pb2.TraceAction, error: execution_pb2.ExecutionError | None
) -> tuple[ActionRow, Spec]:
    digest, body = digest_of(trace.spec)
    started = proto_to_micros(trace.start_time) if trace.HasField("start_time") else row.created_at
    ended = proto_to_micros(trace.end_time) if trace.HasField("end_time") else row.created_at
    made = replace(
        row,
        action_type=TRACE,
        phase=Phase.FAILED if trace.phase == Phase.FAILED else Phase.SUCCEEDED,
        short_name=trace.name,
        function_name=trace.name,
        search_name=trace.name.casefold(),
        spec_digest=digest,
        detail=trace.SerializeToString(),
        output_uri=trace.outputs.output_uri,
        error=None if error is None else error.SerializeToString(),
        created_at=started,
        queued_at=started,
        ended_at=max(started, ended),
    )
    return made, Spec(digest=digest, body=body)


def condition_row(row: ActionRow, condition: run_definition_pb2.ConditionAction) -> ActionRow:
    if condition.type.simple not in SIGNAL_TYPES or condition.type.WhichOneof("type") != "simple":
        raise InvalidArgument("action.condition.type.simple must be BOOLEAN, INTEGER, FLOAT or STRING")
    return replace(
        row,
        action_type=CONDITION,
        phase=Phase.PAUSED,
        short_name=condition.name,
        function_name=condition.name,
        search_name=condition.name.casefold(),
        detail=condition.SerializeToString(),
        # The webhook is owed at once, and until it was accepted.
        not_before=row.created_at if condition.webhook.url else None,
    )
