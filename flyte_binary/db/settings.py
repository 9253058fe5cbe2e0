"""The `settings` table: one document a scope, replaced by whoever knows its version."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from flyteidl2.settings import settings_definition_pb2 as pb
from sqlalchemy import Connection, bindparam, or_, select, update

from flyte_binary.db.dialect import insert_if_absent
from flyte_binary.db.prepared import Prepared
from flyte_binary.db.tables import settings
from flyte_binary.domain.settings import resolve

_COLUMNS = tuple(settings.c[name] for name in ("domain", "project", "settings", "version", "created_at", "updated_at"))
_IS = (settings.c.domain == bindparam("by_domain"), settings.c.project == bindparam("by_project"))
_LEVELS = Prepared(
    select(*_COLUMNS)
    .where(or_(settings.c.domain == "", _IS[0]), or_(settings.c.project == "", _IS[1]))
    .order_by(settings.c.domain, settings.c.project)
)
"""Broadest first: the empty names of the broader scopes come before all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsRow:
    """Times are microseconds since the epoch."""

    domain: str
    project: str
    settings: bytes
    version: int
    created_at: int
    updated_at: int


class SettingsDocuments:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def levels(self, domain: str, project: str) -> list[SettingsRow]:
        """Those that count in the scope, broadest first: of the organization, the domain and the project."""
        records = _LEVELS.all(self._connection, {"by_domain": domain, "by_project": project})
        return [SettingsRow(**dict(zip(SettingsRow.__slots__, record, strict=True))) for record in records]

    def resolved(self, domain: str, project: str) -> pb.Settings | None:
        """What they come to in the scope; None if no level of it has any."""
        rows = self.levels(domain, project)
        return resolved(rows) if rows else None

    def insert(self, row: SettingsRow) -> bool:
        """False if the scope has settings."""
        return insert_if_absent(self._connection, settings, asdict(row))

    def replace(self, row: SettingsRow, *, version: int) -> bool:
        """Everything but the time of creation; False, and nothing is changed, unless the settings are at `version`."""
        values = {"settings": row.settings, "version": row.version, "updated_at": row.updated_at}
        statement = update(settings).where(*_IS, settings.c.version == version).values(**values)
        scope = {"by_domain": row.domain, "by_project": row.project}
        return self._connection.execute(statement, scope).rowcount > 0


def resolved(rows: list[SettingsRow]) -> pb.Settings:
    """`rows` are those that count in a scope, broadest first."""
    return resolve((_scope_level(row), pb.Settings.FromString(row.settings)) for row in rows)


def _scope_level(row: SettingsRow) -> pb.ScopeLevel:
    if row.project:
        return pb.SCOPE_LEVEL_PROJECT
    return pb.SCOPE_LEVEL_DOMAIN if row.domain else pb.SCOPE_LEVEL_ORG
