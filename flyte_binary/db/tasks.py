"""Deployed tasks and the specs they share with runs, stored once by content."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any  # column values of one row have many types

from google.protobuf.message import Message
from sqlalchemy import ColumnElement, Connection, RowMapping, and_, bindparam, case, func, literal, select

from flyte_binary.db.dialect import insert_if_absent, upsert
from flyte_binary.db.listing import Columns, Listed, find_page, where
from flyte_binary.db.prepared import Prepared
from flyte_binary.db.rows import TaskRow
from flyte_binary.db.tables import task_specs, tasks, triggers
from flyte_binary.db.tables.columns import BytewiseText
from flyte_binary.domain.filters import Condition
from flyte_binary.domain.ids import ProjectId, TaskId
from flyte_binary.domain.pages import Page, SortValue

_TRIGGERS_OF_TASK = (
    triggers.c.project == tasks.c.project,
    triggers.c.domain == tasks.c.domain,
    triggers.c.task_name == tasks.c.name,
    triggers.c.task_version == tasks.c.version,
    triggers.c.deleted_at.is_(None),
)


def _of_triggers(value: ColumnElement[Any]) -> ColumnElement[Any]:  # any: the value's type
    """Something about the live triggers of this version of the task."""
    return select(value).where(*_TRIGGERS_OF_TASK).correlate(tasks).scalar_subquery()


_STORED: Columns = {
    name: Listed(tasks.c[name])
    for name in (
        "project",
        "domain",
        "name",
        "version",
        "environment",
        "function_name",
        "deployed_by",
        "env_description",
        "short_description",
        "is_entrypoint",
        "created_at",
        "updated_at",
    )
}
COLUMNS: Columns = {
    **_STORED,
    # Only of a task that has one.
    "trigger_name": Listed(
        _of_triggers(case((func.count() == 1, func.min(triggers.c.name)), else_=literal("", BytewiseText)))
    ),
    "total_triggers": Listed(_of_triggers(func.count())),
    "active_triggers": Listed(_of_triggers(func.coalesce(func.sum(triggers.c.active), 0))),
}

_SPEC = Prepared(select(task_specs.c.spec).where(task_specs.c.digest == bindparam("digest")))
_BY_ID = select(tasks).where(
    *(tasks.c[name] == bindparam(f"by_{name}") for name in ("project", "domain", "name", "version"))
)


@dataclass(frozen=True, slots=True)
class FoundTasks:
    rows: list[TaskRow]
    last: tuple[SortValue, ...] | None
    """Sort values of the last row if more rows follow."""

    total: int = 0
    """Tasks (by name) of the scope."""

    filtered_total: int = 0
    """Of these, the ones that meet the conditions."""


def digest_of(spec: Message) -> tuple[str, bytes]:
    """The content address of a `TaskSpec` or `TraceSpec`, and its bytes.

    Any stable content hash serves; only a database shared with the reference would need its own.
    """
    body = spec.SerializeToString(deterministic=True)
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode().rstrip("="), body


class TaskSpecs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, digest: str, body: bytes, *, at: int) -> None:
        """Store if absent."""
        insert_if_absent(self._connection, task_specs, {"digest": digest, "spec": body, "created_at": at})

    def get(self, digest: str) -> bytes | None:
        record = _SPEC.first(self._connection, {"digest": digest})
        return None if record is None else record[0]


class Tasks:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def upsert(self, row: TaskRow) -> None:
        """A task of the same id is replaced, its first deployment time kept."""
        values: dict[str, Any] = {
            "project": row.id.project,
            "domain": row.id.domain,
            "name": row.id.name,
            "version": row.id.version,
            "environment": row.environment,
            "function_name": row.function_name,
            "env_description": row.env_description,
            "short_description": row.short_description,
            "deployed_by": row.deployed_by,
            "is_entrypoint": row.is_entrypoint,
            "spec_digest": row.spec_digest,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
        }
        upsert(self._connection, tasks, values, ("project", "domain", "name", "version"), kept=("created_at",))

    def get(self, task: TaskId) -> TaskRow | None:
        parameters = {
            "by_project": task.project,
            "by_domain": task.domain,
            "by_name": task.name,
            "by_version": task.version,
        }
        record = self._connection.execute(_BY_ID, parameters).mappings().first()
        return None if record is None else task_row_of(record)

    def list_latest(self, project: ProjectId | None, conditions: Sequence[Condition], page: Page) -> FoundTasks:
        """Of each name the version that was deployed last among those that meet the conditions."""
        scope = _in_project(project)
        met = and_(scope, where(conditions, COLUMNS))
        rank = func.row_number().over(
            partition_by=(tasks.c.project, tasks.c.domain, tasks.c.name),
            order_by=(tasks.c.created_at.desc(), tasks.c.version.desc()),
        )
        ranked = select(tasks.c.project, tasks.c.domain, tasks.c.name, tasks.c.version, rank.label("place")).where(met)
        latest = ranked.subquery("latest")
        own = and_(*(tasks.c[name] == latest.c[name] for name in ("project", "domain", "name", "version")))
        statement = select(tasks).join(latest, own).where(latest.c.place == 1)
        records, last = find_page(self._connection, statement, page, COLUMNS)
        return FoundTasks(
            [task_row_of(record) for record in records],
            last,
            total=self._count_names(scope),
            filtered_total=self._count_names(met),
        )

    def list_versions(self, project: ProjectId, name: str, conditions: Sequence[Condition], page: Page) -> FoundTasks:
        statement = select(tasks).where(_in_project(project), tasks.c.name == name, where(conditions, COLUMNS))
        records, last = find_page(self._connection, statement, page, COLUMNS)
        return FoundTasks([task_row_of(record) for record in records], last)

    def _count_names(self, condition: ColumnElement[bool]) -> int:
        names = select(tasks.c.project, tasks.c.domain, tasks.c.name).where(condition).distinct().subquery()
        return self._connection.execute(select(func.count()).select_from(names)).scalar_one()


def _in_project(project: ProjectId | None) -> ColumnElement[bool]:
    if project is None:
        return tasks.c.project.is_not(None)
    return and_(tasks.c.project == project.project, tasks.c.domain == project.domain)


def task_row_of(record: RowMapping) -> TaskRow:
    return TaskRow(
        id=TaskId(record["project"], record["domain"], record["name"], record["version"]),
        environment=record["environment"],
        function_name=record["function_name"],
        env_description=record["env_description"],
        short_description=record["short_description"],
        deployed_by=record["deployed_by"],
        is_entrypoint=bool(record["is_entrypoint"]),
        spec_digest=record["spec_digest"],
        created_at=record["created_at"],
        updated_at=record["updated_at"],
    )
