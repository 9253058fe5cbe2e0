"""CreateArtifact and DeclareArtifact: new versions, and the partition keys that a name is bound to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from flyteidl2.artifact import artifact_pb2, artifact_service_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.artifacts import ArtifactName, ArtifactRow
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.runs.artifacts.partitions import Partition, Schema, described, partition_from, same, schema_from
from flyte_binary.runs.artifacts.requests import check_spec, name_from, source_action_of, version_from
from flyte_binary.runs.projects.scope import require_domain, require_project


class Publisher:
    def __init__(self, database: Database, clock: Clock, domains: Collection[str]) -> None:
        self._database = database
        self._clock = clock
        self._domains = domains

    async def create(
        self, request: artifact_service_pb2.CreateArtifactRequest, created_by: bytes | None
    ) -> ArtifactRow:
        """Publishing the same again is answered with what is there.

        A version whose partitions are not those of its name is kept, because its value exists already, and says so.
        Raises `InvalidArgument`, `NotFound` for an unknown project, domain or producing action, and `AlreadyExists` if
        the version is another one.
        """
        if not request.HasField("artifact_id") or not request.HasField("spec"):
            raise InvalidArgument("artifact_id and spec are required")
        name = name_from(request.artifact_id.name, "artifact_id.name")
        version = version_from(request.artifact_id.version, "artifact_id.version")
        require_domain(name.domain, self._domains)
        spec = artifact_pb2.ArtifactSpec()
        spec.CopyFrom(request.spec)
        check_spec(spec, name)
        source = source_action_of(spec, name)
        partition = partition_from(spec)
        _complete(spec, name, version, partition)
        row = ArtifactRow(
            name=name,
            version=version,
            spec=spec.SerializeToString(deterministic=True),
            partition=partition.identity,
            time_partition=partition.time,
            source_run=source.run if source is not None else "",
            source_action=source.name if source is not None else "",
            source_external_ref=spec.source.external_ref,
            created_by=created_by,
            created_at=self._clock.now(),
        )
        metadata = dict(spec.info.user_metadata)
        return await self._database.write(lambda tx: _insert(tx, row, source, metadata, partition))

    async def declare(self, request: artifact_service_pb2.DeclareArtifactRequest) -> Schema:
        """Raises `FailedPrecondition` if the name has other keys already."""
        if not request.HasField("partition_schema"):
            raise InvalidArgument("partition_schema is required")
        name = name_from(request.name, "name")
        schema = schema_from(request.partition_schema)
        require_domain(name.domain, self._domains)

        def operation(tx: Transaction) -> None:
            require_project(tx, name.project)
            fixed = Schema.FromString(
                tx.artifacts.fix_schema(name, schema.SerializeToString(deterministic=True)).schema
            )
            if not same(fixed, schema):
                raise FailedPrecondition(
                    f"partition_schema: artifact {name.name} is partitioned by {described(fixed)}, "
                    f"not by {described(schema)}; other partitions need another name"
                )
            tx.artifacts.declare(name, schema.SerializeToString(deterministic=True))

        await self._database.write(operation)
        return schema


def _insert(
    tx: Transaction, row: ArtifactRow, source: ActionId | None, metadata: dict[str, str], partition: Partition
) -> ArtifactRow:
    require_project(tx, row.name.project)
    if source is not None and tx.actions.get(source) is None:
        raise NotFound(f"spec.source.task_action.action: action {source} not found")
    existing = tx.artifacts.get(row.name, row.version)
    if existing is None:
        row = replace(row, mismatch=_mismatch(tx, row.name, partition))
        if tx.artifacts.insert(row, metadata, partition.texts):
            return row
        existing = tx.artifacts.get(row.name, row.version)
    if existing is None or existing.spec != row.spec:
        raise AlreadyExists(
            f"artifact {row.name.name} has another version {row.version!r} already; versions never change"
        )
    return existing


def _mismatch(tx: Transaction, name: ArtifactName, partition: Partition) -> bytes | None:
    actual = partition.schema()
    expected = Schema.FromString(tx.artifacts.fix_schema(name, actual.SerializeToString(deterministic=True)).schema)
    if same(expected, actual):
        return None
    message = f"partitioned by {described(actual)}, where {name.name} is partitioned by {described(expected)}"
    found = artifact_pb2.PartitionSchemaMismatch(expected=expected, actual=actual, message=message)
    return found.SerializeToString(deterministic=True)


def _complete(spec: artifact_pb2.ArtifactSpec, name: ArtifactName, version: str, partition: Partition) -> None:
    """The value carries the artifact's identity wherever it goes, and times are beginnings of partitions."""
    stamp = spec.value.artifact_id
    stamp.key.project, stamp.key.domain, stamp.key.name, stamp.key.org = name.project, name.domain, name.name, ""
    stamp.version = version
    if partition.time is not None:
        spec.time_partition.key = partition.time_key
        spec.time_partition.value.time_value.CopyFrom(micros_to_proto(partition.time))
