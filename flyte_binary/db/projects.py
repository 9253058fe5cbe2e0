"""The `projects` table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import NamedTuple

from sqlalchemy import Connection, RowMapping, bindparam, select, update

from flyte_binary.db.dialect import insert_if_absent
from flyte_binary.db.listing import Columns, Listed, find_page, where
from flyte_binary.db.prepared import Prepared
from flyte_binary.db.rows import ProjectRow
from flyte_binary.db.tables import projects
from flyte_binary.domain.filters import Condition
from flyte_binary.domain.pages import Page, SortValue

COLUMNS: Columns = {
    name: Listed(projects.c[name])
    for name in ("identifier", "name", "description", "state", "created_at", "updated_at")
}

_FIELDS = tuple(field.name for field in fields(ProjectRow))
_BY_IDENTIFIER = Prepared(
    select(*(projects.c[name] for name in _FIELDS)).where(projects.c.identifier == bindparam("identifier"))
)


class FoundProjects(NamedTuple):
    rows: list[ProjectRow]
    last: tuple[SortValue, ...] | None
    """Sort values of the last row if more rows follow."""


class Projects:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, row: ProjectRow) -> bool:
        """False if a project of that identifier exists."""
        return insert_if_absent(self._connection, projects, asdict(row))

    def get(self, identifier: str) -> ProjectRow | None:
        record = _BY_IDENTIFIER.first(self._connection, {"identifier": identifier})
        return None if record is None else ProjectRow(**dict(zip(_FIELDS, record, strict=True)))

    def list(self, conditions: Sequence[Condition], page: Page) -> FoundProjects:
        statement = select(projects).where(where(conditions, COLUMNS))
        records, last = find_page(self._connection, statement, page, COLUMNS)
        return FoundProjects([project_row_of(record) for record in records], last)

    def replace(self, row: ProjectRow) -> bool:
        """Replace name, description, labels and state; False if there is no such project."""
        statement = (
            update(projects)
            .where(projects.c.identifier == row.identifier)
            .values(
                name=row.name,
                description=row.description,
                labels=row.labels,
                state=row.state,
                updated_at=row.updated_at,
            )
        )
        return self._connection.execute(statement).rowcount > 0


def project_row_of(record: RowMapping) -> ProjectRow:
    return ProjectRow(**{name: record[name] for name in ProjectRow.__dataclass_fields__})
