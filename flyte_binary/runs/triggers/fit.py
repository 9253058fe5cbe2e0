"""Whether a trigger and its task go together."""

from __future__ import annotations

from flyteidl2.core import types_pb2
from flyteidl2.task import task_definition_pb2

from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import InvalidArgument, NotFound
from flyte_binary.domain.ids import TaskId
from flyte_binary.runs.triggers.draft import TriggerDraft


def require_task(tx: Transaction, draft: TriggerDraft) -> None:
    """Raises `NotFound` if the version of the task is not deployed, else as `require_inputs`."""
    require_inputs(draft, task_spec(tx, draft.task))


def require_inputs(draft: TriggerDraft, spec: task_definition_pb2.TaskSpec) -> None:
    """Raises `InvalidArgument` for an input to fill in that the task does not have, or that cannot hold it."""
    schedule, artifact = draft.automation.schedule, draft.automation.artifact
    _require_input(draft, spec, "schedule.kickoff_time_input_arg", schedule.kickoff_time_input_arg)
    _require_input(draft, spec, "artifact.input_arg", artifact.input_arg)
    for name in artifact.partition_input_args:
        _require_input(draft, spec, "artifact.partition_input_args", name)
        declared = input_type(spec, name)
        if declared is not None and declared.simple not in (types_pb2.DATETIME, types_pb2.STRING):
            raise InvalidArgument(
                f"automation_spec.artifact.partition_input_args: input {name!r} of task {draft.task} must be a time or "
                "a text, which partitions are"
            )


def _require_input(draft: TriggerDraft, spec: task_definition_pb2.TaskSpec, field: str, name: str) -> None:
    if name and input_type(spec, name) is None:
        known = ", ".join(entry.key for entry in spec.task_template.interface.inputs.variables) or "none"
        raise InvalidArgument(f"automation_spec.{field}: task {draft.task} has no input {name!r}; it has: {known}")


def task_spec(tx: Transaction, task: TaskId) -> task_definition_pb2.TaskSpec:
    row = tx.tasks.get(task)
    body = None if row is None else tx.specs.get(row.spec_digest)
    if body is None:
        raise NotFound(f"task {task} not found")
    return task_definition_pb2.TaskSpec.FromString(body)


def input_type(spec: task_definition_pb2.TaskSpec, name: str) -> types_pb2.LiteralType | None:
    for entry in spec.task_template.interface.inputs.variables:
        if entry.key == name:
            return entry.value.type
    return None
