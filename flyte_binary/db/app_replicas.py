"""The `app_replicas` table: processes of apps on the servers' own machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any  # column values of one row have many types

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, select, update

from flyte_binary.db.dialect import insert_if_absent
from flyte_binary.db.tables import app_replicas
from flyte_binary.domain.ids import AppId

_KEY = ("project", "domain", "name")
_PLAIN = ("number", "revision", "sha", "nonce", "port", "ready", "node", "created_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow:
    app: AppId
    number: int
    """Counted from 1, never used again for another process of the app."""

    revision: int
    sha: str
    nonce: str
    """Of the launch."""

    port: int
    """That the app was told to listen on."""

    ready: int = 0
    """1 once it has listened."""

    node: str
    created_at: int
    """Microseconds since the epoch."""


class AppReplicas:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, row: ReplicaRow) -> bool:
        """False if there is one of that number."""
        values = {**_own(row.app), **{name: getattr(row, name) for name in _PLAIN}}
        return insert_if_absent(self._connection, app_replicas, values)

    def mark_ready(self, app: AppId, number: int) -> None:
        statement = update(app_replicas).where(_is(app), app_replicas.c.number == number)
        self._connection.execute(statement.values(ready=1))

    def of_node(self, node: str) -> list[ReplicaRow]:
        statement = select(app_replicas).where(app_replicas.c.node == node)
        statement = statement.order_by(*(app_replicas.c[name] for name in (*_KEY, "number")))
        return [_row_of(record) for record in self._connection.execute(statement).mappings()]

    def remove(self, app: AppId, number: int) -> None:
        self._connection.execute(delete(app_replicas).where(_is(app), app_replicas.c.number == number))


def _own(app: AppId) -> dict[str, Any]:  # any: column values
    return {name: getattr(app, name) for name in _KEY}


def _is(app: AppId) -> ColumnElement[bool]:
    return and_(*(app_replicas.c[name] == getattr(app, name) for name in _KEY))


def _row_of(record: RowMapping) -> ReplicaRow:
    return ReplicaRow(
        app=AppId(*(record[name] for name in _KEY)),
        **{name: record[name] for name in _PLAIN},
    )
