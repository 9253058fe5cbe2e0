"""What the data proxy asks of the rest of the server, in memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from flyteidl2.common import identifier_pb2
from flyteidl2.task import task_definition_pb2

from flyte_binary.dataproxy.ports import ActionData, AttemptView
from flyte_binary.domain import topics
from flyte_binary.domain.errors import NotFound
from flyte_binary.domain.ids import ActionId, AttemptId, ProjectId, TaskId
from flyte_binary.domain.logs import LogLine, LogPage
from flyte_binary.live.hub import Hub


class MemoryProjects:
    def __init__(self, *names: str) -> None:
        self.names = set(names)

    async def exists(self, project: str) -> bool:
        return project in self.names


class MemoryTasks:
    def __init__(self) -> None:
        self.specs: dict[TaskId, task_definition_pb2.TaskSpec] = {}
        self.triggers: dict[tuple[str, str], TaskId] = {}
        """By task name and trigger name."""

    async def spec(self, task: TaskId) -> task_definition_pb2.TaskSpec | None:
        return self.specs.get(task)

    async def of_trigger(self, trigger: identifier_pb2.TriggerName) -> TaskId | None:
        return self.triggers.get((trigger.task_name, trigger.name))


class MemoryRunBases:
    def __init__(self) -> None:
        self.bases: dict[ProjectId, str] = {}

    async def of(self, scope: ProjectId) -> str:
        return self.bases.get(scope, "")


class MemoryActions:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.actions: dict[ActionId, ActionData] = {}
        self.attempts: dict[AttemptId, AttemptView] = {}

    async def data(self, action: ActionId) -> ActionData | None:
        return self.actions.get(action)

    async def attempt(self, attempt: AttemptId) -> AttemptView | None:
        return self.attempts.get(attempt)

    def update(self, attempt: AttemptId, **changes: bool | str) -> None:
        """Change an attempt and publish the hint, as a commit does."""
        self.attempts[attempt] = replace(self.attempts.get(attempt, AttemptView()), **changes)  # type: ignore[arg-type]
        self._hub.publish([(topics.run(attempt.action.run_id), (attempt.action.name,))])


class MemoryLogs:
    """Live logs; a position is the number of a line."""

    def __init__(self) -> None:
        self._lines: dict[AttemptId, list[LogLine]] = {}
        self._ended: set[AttemptId] = set()
        self._changed = asyncio.Condition()
        self.waiting = asyncio.Event()
        """Set when a reader has read everything and waits for more."""

    async def write(self, attempt: AttemptId, *lines: LogLine) -> None:
        async with self._changed:
            self.waiting.clear()
            self._lines.setdefault(attempt, []).extend(lines)
            self._changed.notify_all()

    async def end(self, attempt: AttemptId) -> None:
        async with self._changed:
            self._ended.add(attempt)
            self._changed.notify_all()

    async def forget(self, attempt: AttemptId) -> None:
        """The folder of the attempt is removed."""
        async with self._changed:
            del self._lines[attempt]
            self._changed.notify_all()

    async def tail_position(self, attempt: AttemptId, *, lines: int) -> int | None:
        log = self._lines.get(attempt)
        return None if log is None else max(len(log) - lines, 0)

    async def read(self, attempt: AttemptId, position: int, *, limit_lines: int) -> LogPage:
        log = self._lines.get(attempt)
        if log is None:
            raise NotFound(f"there is no live log of {attempt}")
        lines = log[position : position + limit_lines]
        position += len(lines)
        return LogPage(lines=lines, position=position, ended=attempt in self._ended and position == len(log))

    async def wait(self, attempt: AttemptId, position: int, *, timeout_seconds: float) -> None:
        def something_new() -> bool:
            return attempt in self._ended or len(self._lines.get(attempt, [])) != position

        async with self._changed:
            self.waiting.set()
            try:
                async with asyncio.timeout(timeout_seconds):
                    await self._changed.wait_for(something_new)
            except TimeoutError:
                pass
