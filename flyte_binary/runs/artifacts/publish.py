"""CreateArtifact and DeclareArtifact: new versions, and the partition keys that a name is bound to."""

from __future__ import annotations

from collections.abc import Collection

from flyteidl2.artifact import artifact_pb2, artifact_service_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.artifacts import ArtifactRow
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import FailedPrecondition, InvalidArgument
from flyte_binary.runs.artifacts.partitions import Schema, described, same, schema_from
from flyte_binary.runs.artifacts.requests import name_from, version_from
from flyte_binary.runs.artifacts.versions import publication_from, publish
from flyte_binary.runs.projects.scope import require_domain, require_project


class Publisher:
    def __init__(self, database: Database, clock: Clock, domains: Collection[str]) -> None:
        self._database = database
        self._clock = clock
        self._domains = domains

    async def create(
        self, request: artifact_service_pb2.CreateArtifactRequest, created_by: bytes | None
    ) -> ArtifactRow:
        """See `publish`. Raises `InvalidArgument`, `NotFound` for an unknown project, domain or producing action, and
        `AlreadyExists` if the version is another one."""
        if not request.HasField("artifact_id") or not request.HasField("spec"):
            raise InvalidArgument("artifact_id and spec are required")
        name = name_from(request.artifact_id.name, "artifact_id.name")
        version = version_from(request.artifact_id.version, "artifact_id.version")
        require_domain(name.domain, self._domains)
        spec = artifact_pb2.ArtifactSpec()
        spec.CopyFrom(request.spec)
        publication = publication_from(name, version, spec, created_by=created_by, at=self._clock.now())
        return await self._database.write(lambda tx: publish(tx, publication))

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
