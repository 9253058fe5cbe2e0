"""What the data proxy needs to know from the rest of the server, as small protocols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from flyteidl2.common import identifier_pb2
from flyteidl2.task import common_pb2, task_definition_pb2
from flyteidl2.trigger import trigger_definition_pb2

from flyte_binary.domain.ids import ActionId, AttemptId, ProjectId, TaskId, TriggerId
from flyte_binary.domain.logs import LogPage


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionData:
    """Where the inputs and outputs of one action are."""

    inputs_uri: str = ""
    """The file; empty if the action has none."""

    outputs_uri: str = ""
    """The file; empty unless the action succeeded (also from the cache, or recovered)."""

    outputs: common_pb2.Outputs | None = None
    """Instead of a file: the value that a condition was signalled with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """What one attempt of an action has to show."""

    launched: bool = False
    """A process was started for it, so there may be a live log."""

    over: bool = False
    """It runs no more, or never will: it ended, or its action did before it began."""

    log_uri: str = ""
    """The archived log; empty as long as it is not there."""

    report_uri: str = ""
    """Where the report is if the task makes one; the file may be missing."""

    bundle_uri: str = ""
    """The archive with the task's code; empty if the code is in the image."""


class Projects(Protocol):
    async def exists(self, project: str) -> bool: ...


class Tasks(Protocol):
    async def spec(self, task: TaskId) -> task_definition_pb2.TaskSpec | None: ...

    async def of_trigger(self, trigger: identifier_pb2.TriggerName) -> TaskId | None:
        """The task, in the version that the trigger is pinned to."""
        ...


class RunBases(Protocol):
    async def of(self, scope: ProjectId) -> str:
        """Where the settings have runs of the project and domain put their files; empty if they leave it open."""
        ...


class Triggers(Protocol):
    async def spec(self, trigger: TriggerId, revision: int) -> trigger_definition_pb2.TriggerSpec | None:
        """Of one revision, or with 0 of the trigger as it is; None if there is none."""
        ...


class Actions(Protocol):
    async def data(self, action: ActionId) -> ActionData | None:
        """None if there is no such action."""
        ...

    async def attempt(self, attempt: AttemptId) -> AttemptView | None:
        """None if there is no such action, or it has fewer attempts. The current attempt of an action
        exists from the moment the action does, also while it waits, and of one that never ran."""
        ...


class LiveLogs(Protocol):
    """Output of attempts that run, or ended so recently that their log is not archived yet."""

    async def tail_position(self, attempt: AttemptId, *, lines: int) -> int | None:
        """The position from which the last `lines` lines follow; None if there is no such log."""
        ...

    async def read(self, attempt: AttemptId, position: int, *, limit_lines: int) -> LogPage:
        """Raises `NotFound` if the log is gone meanwhile."""
        ...

    async def wait(self, attempt: AttemptId, position: int, *, timeout_seconds: float) -> None:
        """Return when something may follow `position`, or after the timeout."""
        ...
