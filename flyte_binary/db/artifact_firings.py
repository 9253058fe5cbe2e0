"""The `artifact_firings` table: runs that triggers owe to versions of the artifacts that they watch."""

from __future__ import annotations

from typing import Any  # any: column values of one row have many types

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, select, tuple_

from flyte_binary.db.dialect import insert_if_absent
from flyte_binary.db.tables import artifact_firings
from flyte_binary.db.trigger_rows import FiringRow
from flyte_binary.domain.ids import TriggerId

_TRIGGER = ("project", "domain", "task_name", "name")
_COLUMNS = tuple(artifact_firings.c[name] for name in (*_TRIGGER, "artifact", "version", "created_at"))
_ORDER = (artifact_firings.c.created_at, *_COLUMNS[:-1])


class ArtifactFirings:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def owe(self, firing: FiringRow) -> bool:
        """False if it is owed already."""
        values = {**_own(firing.trigger), "artifact": firing.artifact, "version": firing.version}
        return insert_if_absent(self._connection, artifact_firings, {**values, "created_at": firing.created_at})

    def due(self, *, after: FiringRow | None, limit: int) -> list[FiringRow]:
        """The longest waiting first; those behind `after`."""
        statement = select(*_COLUMNS).order_by(*_ORDER).limit(limit)
        if after is not None:
            place = (after.created_at, *_own(after.trigger).values(), after.artifact, after.version)
            statement = statement.where(tuple_(*_ORDER) > place)
        return [_row_of(record) for record in self._connection.execute(statement).mappings()]

    def take(self, firing: FiringRow) -> bool:
        """For whoever makes the run in this transaction; False if it is owed no more."""
        table = artifact_firings
        same = (*_of(firing.trigger), table.c.artifact == firing.artifact, table.c.version == firing.version)
        return self._connection.execute(delete(table).where(*same)).rowcount > 0

    def drop(self, trigger: TriggerId) -> None:
        """Nothing is owed any more by that trigger."""
        self._connection.execute(delete(artifact_firings).where(*_of(trigger)))


def _own(trigger: TriggerId) -> dict[str, Any]:  # any: column values
    return {name: getattr(trigger, name) for name in _TRIGGER}


def _of(trigger: TriggerId) -> list[ColumnElement[bool]]:
    return [artifact_firings.c[name] == value for name, value in _own(trigger).items()]


def _row_of(record: RowMapping) -> FiringRow:
    return FiringRow(
        trigger=TriggerId(*(record[name] for name in _TRIGGER)),
        artifact=record["artifact"],
        version=record["version"],
        created_at=record["created_at"],
    )
