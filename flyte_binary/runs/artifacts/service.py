"""ArtifactService: published values, found by name, version, partition and where they come from."""

from __future__ import annotations

from collections.abc import Collection

from flyteidl2.artifact import artifact_pb2
from flyteidl2.artifact import artifact_service_pb2 as pb
from flyteidl2.common import list_pb2
from flyteidl2.core import artifact_id_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.artifacts import ArtifactRow
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import InvalidArgument, NotFound
from flyte_binary.domain.filters import Order, orders_from_proto
from flyte_binary.domain.names import check_text
from flyte_binary.domain.pages import page_from_proto, token_after
from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.rpc.identity import RequestContext
from flyte_binary.runs.artifacts.partitions import KEY_LIMIT, Schema, time_text
from flyte_binary.runs.artifacts.publish import Publisher
from flyte_binary.runs.artifacts.requests import FIELDS, NEWEST_FIRST, TIES, name_from, query_from, version_from
from flyte_binary.runs.artifacts.view import artifact_of
from flyte_binary.runs.callers import stored_identity_of
from flyte_binary.runs.requests import project_id_from

VALUES = 1000
"""Partition values in one answer, unless fewer are asked for: there are no pages of them."""

_SHOWN_PARTITIONS = 16


class ArtifactService:
    def __init__(self, *, database: Database, clock: Clock, domains: Collection[str]) -> None:
        """`domains` are the ids of those that every project has."""
        self._database = database
        self._publisher = Publisher(database, clock, domains)

    async def create_artifact(
        self, request: pb.CreateArtifactRequest, context: RequestContext
    ) -> pb.CreateArtifactResponse:
        row = await self._publisher.create(request, stored_identity_of(context.caller))
        return pb.CreateArtifactResponse(artifact=artifact_of(row))

    async def declare_artifact(
        self, request: pb.DeclareArtifactRequest, context: RequestContext
    ) -> pb.DeclareArtifactResponse:
        return pb.DeclareArtifactResponse(partition_schema=await self._publisher.declare(request))

    async def get_artifact(self, request: pb.GetArtifactRequest, context: RequestContext) -> pb.GetArtifactResponse:
        """Without a version the newest."""
        name, version = name_from(request.name, "name"), request.version
        check_text("version", version)
        row = await self._database.point(
            lambda tx: tx.artifacts.get(name, version) if version else tx.artifacts.latest(name)
        )
        if row is None:
            raise NotFound(f"artifact {name.name}{f' in version {version!r}' if version else ''} not found")
        return pb.GetArtifactResponse(artifact=artifact_of(row))

    async def delete_artifact(
        self, request: pb.DeleteArtifactRequest, context: RequestContext
    ) -> pb.DeleteArtifactResponse:
        name = name_from(request.artifact_id.name, "artifact_id.name")
        version = version_from(request.artifact_id.version, "artifact_id.version")
        if not await self._database.write(lambda tx: tx.artifacts.delete(name, version)):
            raise NotFound(f"artifact {name.name} in version {version!r} not found")
        return pb.DeleteArtifactResponse()

    async def get_artifact_schema(
        self, request: pb.GetArtifactSchemaRequest, context: RequestContext
    ) -> pb.GetArtifactSchemaResponse:
        name = name_from(request.name, "name")
        row = await self._database.point(lambda tx: tx.artifacts.schema(name))
        if row is None:
            raise NotFound(f"artifact {name.name} has neither a declaration nor a version")
        return pb.GetArtifactSchemaResponse(partition_schema=Schema.FromString(row.schema), declared=row.declared)

    async def list_artifacts(
        self, request: pb.ListArtifactsRequest, context: RequestContext
    ) -> pb.ListArtifactsResponse:
        name = request.name if request.HasField("name") else None
        if request.latest_per_partition and not name:
            raise InvalidArgument("name is required with latest_per_partition")
        query = query_from(request.project_id, request.request, name, latest_per_partition=request.latest_per_partition)
        page = page_from_proto(request.request, _orders(request.request))
        found = await self._database.read(lambda tx: tx.artifacts.list(query, page))
        token = "" if found.last is None else token_after(found.last, page.orders)
        return pb.ListArtifactsResponse(artifacts=[artifact_of(row) for row in found.rows], token=token)

    async def list_artifact_names(
        self, request: pb.ListArtifactNamesRequest, context: RequestContext
    ) -> pb.ListArtifactNamesResponse:
        """Filters are about the newest version of each name."""
        query = query_from(request.project_id, request.request, None)
        page = page_from_proto(request.request, _orders(request.request))

        def look(tx: Transaction) -> pb.ListArtifactNamesResponse:
            found = tx.artifacts.latest_of_names(query, page)
            token = "" if found.last is None else token_after(found.last, page.orders)
            return pb.ListArtifactNamesResponse(groups=[_group(tx, row) for row in found.rows], token=token)

        return await self._database.read(look)

    async def list_artifact_metadata_keys(
        self, request: pb.ListArtifactMetadataKeysRequest, context: RequestContext
    ) -> pb.ListArtifactMetadataKeysResponse:
        scope, name = project_id_from(request.project_id), request.name or None
        check_text("name", request.name)
        keys = await self._database.read(lambda tx: tx.artifacts.metadata_keys(scope.project, scope.domain, name))
        return pb.ListArtifactMetadataKeysResponse(keys=keys)

    async def list_partition_values(
        self, request: pb.ListPartitionValuesRequest, context: RequestContext
    ) -> pb.ListPartitionValuesResponse:
        """Ascending; of the key of the time partition as RFC 3339."""
        check_text("name", request.name, required=True)
        check_text("key", request.key, required=True, limit=KEY_LIMIT)
        query = query_from(request.project_id, request.request, request.name)
        name = name_from(
            artifact_pb2.ArtifactName(project=query.project, domain=query.domain, name=request.name), "name"
        )
        limit = min(request.request.limit or VALUES, VALUES)

        def look(tx: Transaction) -> list[str]:
            row = tx.artifacts.schema(name)
            schema = Schema() if row is None else Schema.FromString(row.schema)
            if request.key == schema.time_partition.key:
                return [time_text(time) for time in tx.artifacts.partition_times(query, limit=limit)]
            return tx.artifacts.partition_values(query, request.key, limit=limit)

        return pb.ListPartitionValuesResponse(values=await self._database.read(look))


def _orders(request: list_pb2.ListRequest) -> list[Order]:
    return orders_from_proto(request, FIELDS, default=NEWEST_FIRST, ties=TIES)


def _group(tx: Transaction, row: ArtifactRow) -> pb.ArtifactGroup:
    versions, newest = tx.artifacts.versions(row.name)
    group = pb.ArtifactGroup(latest=artifact_of(row), versions=versions)
    schema = tx.artifacts.schema(row.name)
    if schema is not None:
        group.partition_schema.CopyFrom(Schema.FromString(schema.schema))
    if newest is None:
        return group
    group.latest_time_partition.CopyFrom(micros_to_proto(newest))
    for one in tx.artifacts.of_time_partition(row.name, newest, limit=_SHOWN_PARTITIONS):
        partitions: artifact_id_pb2.Partitions = artifact_of(one).spec.partitions
        group.latest_partitions.append(partitions)
    return group
