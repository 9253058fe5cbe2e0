"""The `triggers` and `trigger_revisions` tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple  # any: column values of one row have many types

from sqlalchemy import ColumnElement, Connection, RowMapping, Table, and_, bindparam, func, select, true, tuple_, update

from flyte_binary.db.dialect import for_update, insert_if_absent
from flyte_binary.db.listing import Columns, Listed, find_page, where
from flyte_binary.db.prepared import Prepared, Record
from flyte_binary.db.statements import IN_LIMIT, batched
from flyte_binary.db.tables import trigger_revisions, triggers
from flyte_binary.db.trigger_rows import RevisionRow, TriggerRow, TriggerScope, TriggerSummary
from flyte_binary.domain.filters import Condition
from flyte_binary.domain.ids import TaskId, TriggerId
from flyte_binary.domain.pages import Page, SortValue

_KEY = ("project", "domain", "task_name", "name")
_PAYLOAD = (
    "spec",
    "automation_spec",
    "automation_type",
    "task_version",
    "deployed_by",
    "updated_by",
    "deployed_at",
    "updated_at",
    "triggered_at",
    "deleted_at",
)
_OWN = ("with_task", "anchor", "next_due", "watched_artifact")

TRIGGER_COLUMNS: Columns = {
    name: Listed(triggers.c[name])
    for name in (*_KEY, "active", "deployed_at", "updated_at", "task_version", "automation_type")
}
REVISION_COLUMNS: Columns = {
    name: Listed(trigger_revisions.c[name]) for name in ("revision", "deployed_at", "updated_at", "action")
}

_NAMES = (*_KEY, *_PAYLOAD, *_OWN, "active", "latest_revision")
_ROW = select(*(triggers.c[name] for name in _NAMES))
_LIVE = triggers.c.deleted_at.is_(None)
_OF_ID = tuple(triggers.c[name] == bindparam(f"by_{name}") for name in _KEY)
_OF_TASK = tuple(triggers.c[name] == bindparam(f"by_{name}") for name in _KEY[:3])

# What every deployment of a task and every look at one asks.
_ONE = Prepared(_ROW.where(*_OF_ID))
_ONE_LOCKED = Prepared(for_update(_ROW.where(*_OF_ID)))
_ALL_LOCKED = Prepared(for_update(_ROW.where(*_OF_TASK, _LIVE).order_by(triggers.c.name)))
_OF_VERSION = Prepared(
    _ROW.where(*_OF_TASK, triggers.c.task_version == bindparam("by_task_version"), _LIVE).order_by(triggers.c.name)
)
_WATCHED = tuple(triggers.c[name] == bindparam(f"by_{name}") for name in ("project", "domain", "watched_artifact"))
_WATCHING = Prepared(_ROW.where(*_WATCHED).order_by(triggers.c.task_name, triggers.c.name))
_DUE_ORDER = (triggers.c.next_due, *(triggers.c[name] for name in _KEY))


class FoundTriggers(NamedTuple):
    rows: list[TriggerRow]
    last: tuple[SortValue, ...] | None
    """Sort values of the last row if more rows follow."""


class FoundRevisions(NamedTuple):
    rows: list[RevisionRow]
    last: tuple[SortValue, ...] | None


class Triggers:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, row: TriggerRow) -> bool:
        """False if there is a trigger of that id, maybe deleted."""
        return insert_if_absent(self._connection, triggers, {**_values(row), "latest_revision": row.revision})

    def replace(self, row: TriggerRow, *, revision: int) -> bool:
        """False, and nothing is changed, unless the trigger is at `revision`."""
        statement = (
            update(triggers)
            .where(_is(triggers, row.id), triggers.c.latest_revision == revision)
            .values(**_values(row), latest_revision=row.revision)
        )
        return self._connection.execute(statement).rowcount > 0

    def record(self, row: TriggerRow, action: int) -> None:
        """Keep the trigger as its revision `row.revision`."""
        values = {name: value for name, value in _values(row).items() if name not in _OWN}
        insert_if_absent(self._connection, trigger_revisions, {**values, "revision": row.revision, "action": action})

    def get(self, trigger: TriggerId) -> TriggerRow | None:
        """Also one that is deleted."""
        return _row_if(_ONE.first(self._connection, _parameters_of(trigger)))

    def lock(self, trigger: TriggerId) -> TriggerRow | None:
        """`get`, holding the row against other writers until the commit."""
        return _row_if(_ONE_LOCKED.first(self._connection, _parameters_of(trigger)))

    def find(self, trigger: TriggerId) -> TriggerRow | None:
        """One that is not deleted. Without a task's name, the first of that name in the order of their tasks."""
        if trigger.task_name:
            row = self.get(trigger)
            return None if row is None or row.deleted_at is not None else row
        statement = select(triggers).where(
            triggers.c.project == trigger.project,
            triggers.c.domain == trigger.domain,
            triggers.c.name == trigger.name,
            _LIVE,
        )
        record = self._connection.execute(statement.order_by(triggers.c.task_name).limit(1)).mappings().first()
        return None if record is None else _row_of(record)

    def get_revision(self, trigger: TriggerId, revision: int) -> TriggerRow | None:
        statement = select(trigger_revisions).where(
            _is(trigger_revisions, trigger), trigger_revisions.c.revision == revision
        )
        record = self._connection.execute(statement).mappings().first()
        return None if record is None else _revision_of(record).trigger

    def list(self, scope: TriggerScope, conditions: Sequence[Condition], page: Page) -> FoundTriggers:
        statement = select(triggers).where(_LIVE, _in_scope(scope), where(conditions, TRIGGER_COLUMNS))
        records, last = find_page(self._connection, statement, page, TRIGGER_COLUMNS)
        return FoundTriggers([_row_of(record) for record in records], last)

    def history(self, trigger: TriggerId, conditions: Sequence[Condition], page: Page) -> FoundRevisions:
        statement = select(trigger_revisions).where(
            _is(trigger_revisions, trigger), where(conditions, REVISION_COLUMNS)
        )
        records, last = find_page(self._connection, statement, page, REVISION_COLUMNS)
        return FoundRevisions([_revision_of(record) for record in records], last)

    def of_task(self, project: str, domain: str, task_name: str) -> list[TriggerRow]:
        """Those of any version of a task that are not deleted, held against other writers until the commit."""
        parameters = {"by_project": project, "by_domain": domain, "by_task_name": task_name}
        return [_row_of(_named(record)) for record in _ALL_LOCKED.all(self._connection, parameters)]

    def watching(self, project: str, domain: str, artifact: str) -> list[TriggerRow]:
        """Those that new versions of an artifact may fire."""
        parameters = {"by_project": project, "by_domain": domain, "by_watched_artifact": artifact}
        return [_row_of(_named(record)) for record in _WATCHING.all(self._connection, parameters)]

    def due(self, until: int, *, after: TriggerRow | None, limit: int) -> list[TriggerRow]:
        """What has to fire, the longest waiting first; those behind `after`, as it was read."""
        conditions: list[ColumnElement[bool]] = [triggers.c.next_due <= until]
        if after is not None:
            place = (after.next_due, after.id.project, after.id.domain, after.id.task_name, after.id.name)
            conditions.append(tuple_(*_DUE_ORDER) > place)
        statement = select(triggers).where(*conditions).order_by(*_DUE_ORDER).limit(limit)
        return [_row_of(record) for record in self._connection.execute(statement).mappings()]

    def next_due(self, after: int) -> int | None:
        """The earliest time later than `after` at which anything is due."""
        statement = select(func.min(triggers.c.next_due)).where(triggers.c.next_due > after)
        return self._connection.execute(statement).scalar_one()

    def move_on(self, row: TriggerRow, following: int | None) -> bool:
        """Take what is due, for whoever fires it in this transaction: the next one is due at `following`.

        False, and nothing is changed, if somebody else took it or the trigger was changed since `row` was read.
        """
        statement = (
            update(triggers)
            .where(
                _is(triggers, row.id),
                triggers.c.latest_revision == row.revision,
                triggers.c.next_due == row.next_due,
            )
            .values(next_due=following)
        )
        return self._connection.execute(statement).rowcount > 0

    def fired(self, trigger: TriggerId, *, at: int) -> None:
        self._connection.execute(update(triggers).where(_is(triggers, trigger)).values(triggered_at=at))

    def summary(self, task: TaskId) -> TriggerSummary | None:
        """None if the task has no triggers in that version."""
        parameters = {"by_project": task.project, "by_domain": task.domain, "by_task_name": task.name}
        found: TriggerSummary | None = None
        for record in _OF_VERSION.all(self._connection, {**parameters, "by_task_version": task.version}):
            found = _added(found, _row_of(_named(record)))
        return found

    def summaries(self, tasks: Iterable[TaskId]) -> dict[TaskId, TriggerSummary]:
        """Of those tasks that have triggers in that version."""
        found: dict[TaskId, TriggerSummary] = {}
        pinned = tuple_(triggers.c.project, triggers.c.domain, triggers.c.task_name, triggers.c.task_version)
        for chunk in batched(tasks, IN_LIMIT):
            wanted = [(task.project, task.domain, task.name, task.version) for task in chunk]
            statement = select(triggers).where(_LIVE, pinned.in_(wanted)).order_by(triggers.c.name)
            for record in self._connection.execute(statement).mappings():
                row = _row_of(record)
                found[row.task] = _added(found.get(row.task), row)
        return found


def _added(summary: TriggerSummary | None, row: TriggerRow) -> TriggerSummary:
    return TriggerSummary(
        total=(summary.total if summary else 0) + 1,
        active=(summary.active if summary else 0) + row.active,
        name=summary.name if summary else row.id.name,
        automation_spec=summary.automation_spec if summary else row.automation_spec,
    )


def _is(table: Table, trigger: TriggerId) -> ColumnElement[bool]:
    return and_(*(table.c[name] == getattr(trigger, name) for name in _KEY))


def _in_scope(scope: TriggerScope) -> ColumnElement[bool]:
    given = {name: getattr(scope, name) for name in ("project", "domain", "task_name", "task_version")}
    return and_(true(), *(triggers.c[name] == value for name, value in given.items() if value is not None))


def _values(row: TriggerRow) -> dict[str, Any]:  # any: column values
    return {
        **{name: getattr(row.id, name) for name in _KEY},
        **{name: getattr(row, name) for name in (*_PAYLOAD, *_OWN)},
        "active": int(row.active),
    }


def _parameters_of(trigger: TriggerId) -> dict[str, str]:
    return {f"by_{name}": getattr(trigger, name) for name in _KEY}


def _named(record: Record) -> Mapping[str, Any]:  # any: column values
    return dict(zip(_NAMES, record, strict=True))


def _row_if(record: Record | None) -> TriggerRow | None:
    return None if record is None else _row_of(_named(record))


def _row_of(record: Mapping[str, Any] | RowMapping) -> TriggerRow:  # any: column values
    return TriggerRow(
        id=TriggerId(*(record[name] for name in _KEY)),
        revision=record["latest_revision"],
        active=bool(record["active"]),
        with_task=bool(record["with_task"]),
        anchor=record["anchor"],
        next_due=record["next_due"],
        watched_artifact=record["watched_artifact"],
        **{name: record[name] for name in _PAYLOAD},
    )


def _revision_of(record: RowMapping) -> RevisionRow:
    row = TriggerRow(
        id=TriggerId(*(record[name] for name in _KEY)),
        revision=record["revision"],
        active=bool(record["active"]),
        **{name: record[name] for name in _PAYLOAD},
    )
    return RevisionRow(row, record["action"])
