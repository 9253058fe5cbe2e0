"""The `apps` table: what is wanted of each app, and what was seen of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple  # any: column values of one row have many types

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, delete, exists, func, select, update

from flyte_binary.db.dialect import for_update, insert_if_absent
from flyte_binary.db.listing import Columns, Listed, find_page, where
from flyte_binary.db.tables import app_inputs, apps
from flyte_binary.domain.filters import Condition
from flyte_binary.domain.ids import AppId
from flyte_binary.domain.pages import Page, SortValue

_KEY = ("project", "domain", "name")
_PLAIN = (
    "host_label",
    "org",
    "spec",
    "meta",
    "sha",
    "wanted",
    "revision",
    "generation",
    "status",
    "phase",
    "observed",
    "created_by",
    "created_at",
    "updated_at",
    "started_at",
)
COLUMNS: Columns = {
    **{
        name: Listed(apps.c[name])
        for name in (*_KEY, "phase", "revision", "created_by", "created_at", "updated_at", "host_label")
    },
    "started_at": Listed(apps.c.started_at, nullable=True),
}


class Wanted(IntEnum):
    STOPPED = 0
    RUNNING = 1
    DELETED = 2
    """The row goes when nothing is left of the app."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppRow:
    """Times are microseconds since the epoch."""

    id: AppId
    host_label: str
    org: str
    spec: bytes
    """`app.Spec` as it came."""

    meta: bytes
    """`app.Meta` without its identifier."""

    sha: str
    wanted: int
    revision: int
    generation: int
    """Grows with every change of what is wanted."""

    status: bytes
    """`app.Status` as it was seen for the generation `observed`."""

    phase: int
    """Deployment status of the last condition of `status`."""

    observed: int
    created_by: str
    """Subject of the caller who made it, empty if nobody said."""

    created_at: int
    updated_at: int
    started_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedArtifact:
    project: str
    domain: str
    name: str
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppQuery:
    """Of apps that are not deleted; empty texts are no condition."""

    project: str = ""
    domain: str = ""
    artifact: ConsumedArtifact | None = None
    conditions: Sequence[Condition] = ()


class FoundApps(NamedTuple):
    rows: list[AppRow]
    last: tuple[SortValue, ...] | None
    """Sort values of the last row if more rows follow."""


class Apps:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, app: AppId) -> AppRow | None:
        """Also one that is being deleted."""
        return self._first(select(apps).where(_is(app)))

    def lock(self, app: AppId) -> AppRow | None:
        """`get`, holding the row against other writers until the commit."""
        return self._first(for_update(select(apps).where(_is(app))))

    def of_label(self, host_label: str) -> AppRow | None:
        return self._first(select(apps).where(apps.c.host_label == host_label))

    def insert(self, row: AppRow) -> bool:
        """False, and nothing is changed, if the app or its host label exists."""
        return insert_if_absent(self._connection, apps, _values(row))

    def replace(self, row: AppRow) -> None:
        self._connection.execute(update(apps).where(_is(row.id)).values(**_values(row)))

    def consume(self, app: AppId, consumed: Sequence[ConsumedArtifact]) -> None:
        """These are the artifacts of its newest spec."""
        self._connection.execute(delete(app_inputs).where(_is(app, app_inputs)))
        for place, artifact in enumerate(consumed):
            values = {**_own(app), "place": place, **_artifact(artifact)}
            insert_if_absent(self._connection, app_inputs, values)

    def record(self, app: AppId, *, generation: int, status: bytes, phase: int) -> bool:
        """What was seen; False, and nothing is changed, if something else is wanted by now."""
        statement = update(apps).where(_is(app), apps.c.generation == generation)
        values = {"status": status, "phase": phase, "observed": generation}
        return self._connection.execute(statement.values(**values)).rowcount > 0

    def remove(self, app: AppId, *, generation: int) -> bool:
        """False, and nothing is changed, if something else is wanted by now."""
        statement = delete(apps).where(_is(app), apps.c.generation == generation, apps.c.wanted == Wanted.DELETED)
        if not self._connection.execute(statement).rowcount:
            return False
        self._connection.execute(delete(app_inputs).where(_is(app, app_inputs)))
        return True

    def all(self) -> list[AppRow]:
        """Every app, those being deleted included."""
        return [_row_of(record) for record in self._connection.execute(select(apps)).mappings()]

    def list(self, query: AppQuery, page: Page) -> FoundApps:
        statement = select(apps).where(*_matching(query))
        records, last = find_page(self._connection, statement, page, COLUMNS)
        return FoundApps([_row_of(record) for record in records], last)

    def count(self, query: AppQuery) -> int:
        statement = select(func.count()).select_from(apps).where(*_matching(query))
        return self._connection.execute(statement).scalar_one()

    def matching(self, query: AppQuery) -> list[AppRow]:
        """All of them, by name."""
        statement = select(apps).where(*_matching(query)).order_by(*(apps.c[name] for name in _KEY))
        return [_row_of(record) for record in self._connection.execute(statement).mappings()]

    def _first(self, statement: Select[Any]) -> AppRow | None:  # any: as above
        record = self._connection.execute(statement).mappings().first()
        return None if record is None else _row_of(record)


def _own(app: AppId) -> dict[str, Any]:  # any: as above
    return {name: getattr(app, name) for name in _KEY}


def _is(app: AppId, table: Any = apps) -> ColumnElement[bool]:  # any: a table with these columns
    return and_(*(table.c[name] == getattr(app, name) for name in _KEY))


def _values(row: AppRow) -> dict[str, Any]:  # any: as above
    return {**_own(row.id), **{name: getattr(row, name) for name in _PLAIN}}


def _artifact(artifact: ConsumedArtifact) -> dict[str, str]:
    return {f"artifact_{name}": getattr(artifact, name) for name in (*_KEY, "version")}


def _matching(query: AppQuery) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [apps.c.wanted != Wanted.DELETED]
    if query.project:
        found.append(apps.c.project == query.project)
    if query.domain:
        found.append(apps.c.domain == query.domain)
    if query.artifact is not None:
        asked = {name: value for name, value in _artifact(query.artifact).items() if value}
        mine = [app_inputs.c[name] == apps.c[name] for name in _KEY]
        found.append(exists().where(*mine, *(app_inputs.c[name] == value for name, value in asked.items())))
    return [*found, where(query.conditions, COLUMNS)]


def _row_of(record: RowMapping) -> AppRow:
    return AppRow(id=AppId(*(record[name] for name in _KEY)), **{name: record[name] for name in _PLAIN})
