"""The `projects` table."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, RowMapping, select, update

from flyte_binary.db.dialect import insert_if_absent
from flyte_binary.db.rows import ProjectRow
from flyte_binary.db.tables import projects


class Projects:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, row: ProjectRow) -> bool:
        """False if a project of that identifier exists."""
        return insert_if_absent(self._connection, projects, asdict(row))

    def get(self, identifier: str) -> ProjectRow | None:
        statement = select(projects).where(projects.c.identifier == identifier)
        record = self._connection.execute(statement).mappings().first()
        return None if record is None else project_row_of(record)

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
