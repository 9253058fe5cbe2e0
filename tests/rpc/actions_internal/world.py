"""Rows and messages of one run, `r1`."""

from __future__ import annotations

from typing import Any  # column values of one row have many types

from flyteidl2.core import literals_pb2, tasks_pb2, types_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow, EventRow
from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.domain.phases import Phase
from tests.fakes.manual_clock import ManualClock

RUN = RunId("flytesnacks", "development", "r1")
ROOT = RUN.root()
CHILD = RUN.action("child")


class World:
    """Looks into the database, and puts into it what a test starts with."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self._database = database
        self._clock = clock

    async def insert(self, action: ActionId, parent: ActionId | None = ROOT, **columns: Any) -> None:
        row = make_row(action.name, None if parent is None else parent.name, self._clock.now(), **columns)
        assert await self._database.write(lambda tx: tx.actions.insert(row))

    async def row(self, action: ActionId = CHILD) -> ActionRow:
        row = await self.find(action)
        assert row is not None
        return row

    async def find(self, action: ActionId) -> ActionRow | None:
        return await self._database.read(lambda tx: tx.actions.get(action))

    async def events(self, action: ActionId = CHILD) -> list[EventRow]:
        return await self._database.read(lambda tx: tx.events.of_action(action))


def make_row(name: str, parent: str | None, now: int, **columns: Any) -> ActionRow:
    values: dict[str, Any] = {
        "phase": Phase.RUNNING,
        "action_type": run_definition_pb2.ACTION_TYPE_TASK,
        "created_at": now,
        "updated_at": now,
        "queued_at": now,
        **columns,
    }
    return ActionRow(id=RUN.action(name), parent=parent, **values)


def task(name: str = "env.leaf") -> run_definition_pb2.TaskAction:
    template = tasks_pb2.TaskTemplate(type="python", container=tasks_pb2.Container(args=["x"]))
    spec = task_definition_pb2.TaskSpec(task_template=template, short_name="leaf")
    identifier = task_definition_pb2.TaskIdentifier(project=RUN.project, domain=RUN.domain, name=name, version="v1")
    return run_definition_pb2.TaskAction(id=identifier, spec=spec)


def condition(name: str = "ok?") -> run_definition_pb2.ConditionAction:
    return run_definition_pb2.ConditionAction(name=name, type=types_pb2.LiteralType(simple=types_pb2.BOOLEAN))


def literal(value: bool) -> literals_pb2.Literal:
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(boolean=value)))
