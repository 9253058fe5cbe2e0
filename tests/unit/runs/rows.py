"""Rows and events for tests of what is made from them."""

from __future__ import annotations

from typing import Any

from flyteidl2.core import execution_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.action_events import make_event
from flyte_binary.domain.ids import ActionId, RunId, TaskId
from flyte_binary.domain.phases import Phase
from flyte_binary.runs.view.action import CONDITION, TASK, TRACE

RUN = RunId("flytesnacks", "development", "r1")
START = 1_700_000_000_000_000
SECOND = 1_000_000

__all__ = ["CONDITION", "RUN", "SECOND", "START", "TASK", "TRACE", "event", "row"]


def row(name: str = "a0", phase: Phase = Phase.QUEUED, *, parent: str | None = None, **more: Any) -> ActionRow:
    """A task by default; children hang below the root."""
    values: dict[str, Any] = {
        "id": RUN.action(name),
        "parent": parent if name == "a0" else parent or "a0",
        "phase": phase,
        "action_type": TASK,
        "task": TaskId("flytesnacks", "development", "env.hello", "v1"),
        "task_type": "python",
        "short_name": "hello",
        "function_name": "env.hello",
        "created_at": START,
        "queued_at": START,
        "updated_at": START,
        **more,
    }
    return ActionRow(**values)


def event(
    phase: Phase,
    *,
    attempt: int = 1,
    seconds: float = 0,
    error: str = "",
    action: ActionId | None = None,
    **more: Any,
) -> run_definition_pb2.ActionEvent:
    """`seconds` after the start."""
    failure = execution_pb2.ExecutionError(code="E", message=error, kind=execution_pb2.ExecutionError.USER)
    return make_event(
        action or RUN.root(),
        attempt,
        phase,
        at=START + int(seconds * SECOND),
        error=failure if error else None,
        **more,
    )
