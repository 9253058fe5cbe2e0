"""The tables of artifacts: versions, what they are found by, schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple  # any: column values of one row have many types

from sqlalchemy import ColumnElement, Connection, FromClause, RowMapping, and_, delete, exists, func, select, tuple_

from flyte_binary.db.dialect import insert_if_absent, upsert
from flyte_binary.db.listing import Columns, Listed, find_page, where
from flyte_binary.db.tables import artifact_attributes, artifact_schemas, artifacts
from flyte_binary.domain.filters import Condition, Op
from flyte_binary.domain.pages import Page, SortValue

METADATA, PARTITION = 0, 1

_NAME = ("project", "domain", "name")
_KEY = (*_NAME, "version")
_PLAIN = (
    "spec",
    "partition",
    "time_partition",
    "mismatch",
    "source_run",
    "source_action",
    "source_external_ref",
    "created_by",
    "created_at",
)
COLUMNS: Columns = {
    **{
        column: Listed(artifacts.c[column])
        for column in ("name", "version", "created_at", "source_run", "source_action", "source_external_ref")
    },
    "time_partition": Listed(artifacts.c.time_partition, nullable=True),
}
_VALUE: Columns = {"value": Listed(artifact_attributes.c.value)}


@dataclass(frozen=True, slots=True, order=True)
class ArtifactName:
    project: str
    domain: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRow:
    """One version; `created_at` and `time_partition` are microseconds since the epoch."""

    name: ArtifactName
    version: str
    spec: bytes
    """`artifact.ArtifactSpec`."""

    partition: str
    time_partition: int | None = None
    mismatch: bytes | None = None
    """`artifact.PartitionSchemaMismatch`."""

    source_run: str = ""
    source_action: str = ""
    source_external_ref: str = ""
    created_by: bytes | None = None
    created_at: int


@dataclass(frozen=True, slots=True)
class AttributeCondition:
    """About one key of the metadata or of the partitions; the condition's field is `value`."""

    kind: int
    key: str
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactQuery:
    project: str
    domain: str
    name: str | None = None
    conditions: Sequence[Condition] = ()
    attributes: Sequence[AttributeCondition] = ()
    latest_per_partition: bool = False


class FoundArtifacts(NamedTuple):
    rows: list[ArtifactRow]
    last: tuple[SortValue, ...] | None
    """Sort values of the last row if more rows follow."""


class SchemaRow(NamedTuple):
    schema: bytes
    declared: bool


class Artifacts:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, row: ArtifactRow, metadata: Mapping[str, str], partitions: Mapping[str, str]) -> bool:
        """False, and nothing is changed, if the version exists."""
        values = {**_own(row.name), "version": row.version, **{name: getattr(row, name) for name in _PLAIN}}
        if not insert_if_absent(self._connection, artifacts, values):
            return False
        for kind, found in ((METADATA, metadata), (PARTITION, partitions)):
            for key, value in found.items():
                one = {**_own(row.name), "version": row.version, "kind": kind, "key": key, "value": value}
                insert_if_absent(self._connection, artifact_attributes, one)
        return True

    def get(self, name: ArtifactName, version: str) -> ArtifactRow | None:
        return self._first(select(artifacts).where(_of(artifacts, name), artifacts.c.version == version))

    def latest(self, name: ArtifactName) -> ArtifactRow | None:
        newest = (artifacts.c.created_at.desc(), artifacts.c.version.desc())
        return self._first(select(artifacts).where(_of(artifacts, name)).order_by(*newest).limit(1))

    def delete(self, name: ArtifactName, version: str) -> bool:
        """Of a name whose last version goes, the schema goes too unless it was declared."""
        gone = self._connection.execute(
            delete(artifacts).where(_of(artifacts, name), artifacts.c.version == version)
        ).rowcount
        if not gone:
            return False
        attributes = artifact_attributes
        self._connection.execute(delete(attributes).where(_of(attributes, name), attributes.c.version == version))
        if self.latest(name) is None:
            schemas = artifact_schemas
            self._connection.execute(delete(schemas).where(_of(schemas, name), schemas.c.declared.is_(False)))
        return True

    def list(self, query: ArtifactQuery, page: Page) -> FoundArtifacts:
        statement = select(artifacts).where(*_matching(query))
        if query.latest_per_partition:
            statement = statement.where(~_newer("partition"))
        records, last = find_page(self._connection, statement, page, COLUMNS)
        return FoundArtifacts([_row_of(record) for record in records], last)

    def latest_of_names(self, query: ArtifactQuery, page: Page) -> FoundArtifacts:
        """The newest version of each name."""
        statement = select(artifacts).where(*_matching(query), ~_newer())
        records, last = find_page(self._connection, statement, page, COLUMNS)
        return FoundArtifacts([_row_of(record) for record in records], last)

    def versions(self, name: ArtifactName) -> tuple[int, int | None]:
        """How many there are, and the newest time partition of any."""
        statement = select(func.count(), func.max(artifacts.c.time_partition)).where(_of(artifacts, name))
        count, newest = self._connection.execute(statement).one()
        return count, newest

    def of_time_partition(self, name: ArtifactName, time: int, *, limit: int) -> list[ArtifactRow]:
        """The newest version of each partition of that time."""
        statement = select(artifacts).where(_of(artifacts, name), artifacts.c.time_partition == time)
        statement = statement.where(~_newer("partition")).order_by(artifacts.c.partition).limit(limit)
        return [_row_of(record) for record in self._connection.execute(statement).mappings()]

    def metadata_keys(self, project: str, domain: str, name: str | None) -> list[str]:
        table = artifact_attributes
        conditions = [table.c.project == project, table.c.domain == domain, table.c.kind == METADATA]
        if name is not None:
            conditions.append(table.c.name == name)
        statement = select(table.c.key).where(*conditions).distinct().order_by(table.c.key)
        return list(self._connection.execute(statement).scalars())

    def partition_values(self, query: ArtifactQuery, key: str, *, limit: int) -> list[str]:
        table = artifact_attributes
        same = [table.c[column] == artifacts.c[column] for column in _KEY]
        statement = select(table.c.value).select_from(artifacts.join(table, and_(*same)))
        statement = statement.where(*_matching(query), table.c.kind == PARTITION, table.c.key == key)
        return list(self._connection.execute(statement.distinct().order_by(table.c.value).limit(limit)).scalars())

    def partition_times(self, query: ArtifactQuery, *, limit: int) -> list[int]:
        column = artifacts.c.time_partition
        statement = select(column).where(*_matching(query), column.is_not(None)).distinct().order_by(column)
        return list(self._connection.execute(statement.limit(limit)).scalars())

    def schema(self, name: ArtifactName) -> SchemaRow | None:
        table = artifact_schemas
        record = self._connection.execute(select(table.c.schema, table.c.declared).where(_of(table, name))).first()
        return None if record is None else SchemaRow(record[0], bool(record[1]))

    def fix_schema(self, name: ArtifactName, schema: bytes) -> SchemaRow:
        """The schema of the name, which is `schema` if there was none."""
        insert_if_absent(self._connection, artifact_schemas, {**_own(name), "schema": schema, "declared": False})
        found = self.schema(name)
        assert found is not None
        return found

    def declare(self, name: ArtifactName, schema: bytes) -> None:
        upsert(self._connection, artifact_schemas, {**_own(name), "schema": schema, "declared": True}, _NAME)

    def _first(self, statement: Any) -> ArtifactRow | None:  # any: a select of all columns
        record = self._connection.execute(statement).mappings().first()
        return None if record is None else _row_of(record)


def _own(name: ArtifactName) -> dict[str, Any]:  # any: column values
    return {column: getattr(name, column) for column in _NAME}


def _of(table: FromClause, name: ArtifactName) -> ColumnElement[bool]:
    return and_(*(table.c[column] == getattr(name, column) for column in _NAME))


def _newer(*also: str) -> ColumnElement[bool]:
    """Whether a version of the same name, and the same in the columns `also`, came later."""
    other = artifacts.alias("newer")
    same = [other.c[column] == artifacts.c[column] for column in (*_NAME, *also)]
    later = tuple_(other.c.created_at, other.c.version) > tuple_(artifacts.c.created_at, artifacts.c.version)
    return exists().where(*same, later)


def _matching(query: ArtifactQuery) -> list[ColumnElement[bool]]:
    found = [artifacts.c.project == query.project, artifacts.c.domain == query.domain]
    if query.name is not None:
        found.append(artifacts.c.name == query.name)
    found.append(where(query.conditions, COLUMNS))
    return [*found, *(_attribute(condition) for condition in query.attributes)]


def _attribute(asked: AttributeCondition) -> ColumnElement[bool]:
    table = artifact_attributes
    same = [table.c[column] == artifacts.c[column] for column in _KEY]
    mine = [*same, table.c.kind == asked.kind, table.c.key == asked.key]
    if asked.condition.op is Op.NOT_EXISTS:
        return ~exists().where(*mine)
    if asked.condition.op is Op.EXISTS:
        return exists().where(*mine)
    return exists().where(*mine, where([asked.condition], _VALUE))


def _row_of(record: RowMapping) -> ArtifactRow:
    return ArtifactRow(
        name=ArtifactName(*(record[column] for column in _NAME)),
        version=record["version"],
        **{name: record[name] for name in _PLAIN},
    )
