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
    """Raises `InvalidArgument` for an input to fill in that the task does not have."""
    name = draft.automation.schedule.kickoff_time_input_arg
    if name and input_type(spec, name) is None:
        known = ", ".join(entry.key for entry in spec.task_template.interface.inputs.variables) or "none"
        raise InvalidArgument(
            f"automation_spec.schedule.kickoff_time_input_arg: task {draft.task} has no input {name!r}; it has: {known}"
        )


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
