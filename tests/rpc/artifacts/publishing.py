"""Requests about artifacts as the SDK sends them (`flyte/remote/_artifact.py`)."""

from __future__ import annotations

from datetime import UTC, date, datetime

from flyteidl2.artifact import artifact_pb2, artifact_service_pb2
from flyteidl2.common import identifier_pb2, list_pb2
from flyteidl2.core import artifact_id_pb2, literals_pb2, types_pb2

from tests.rpc.artifacts.conftest import World

PROJECT = identifier_pb2.ProjectIdentifier(organization="127", name="flytesnacks", domain="development")


def named(name: str = "model", project: str = "flytesnacks") -> artifact_pb2.ArtifactName:
    return artifact_pb2.ArtifactName(org="127", project=project, domain="development", name=name)


def publication(
    name: str = "model",
    version: str = "v1",
    *,
    uri: str = "s3://bucket/model",
    day: date | None = None,
    attributes: dict[str, str] | None = None,
    external_ref: str = "",
    **partitions: str,
) -> artifact_service_pb2.CreateArtifactRequest:
    spec = artifact_pb2.ArtifactSpec(
        value=literals_pb2.Literal(scalar=literals_pb2.Scalar(blob=literals_pb2.Blob(uri=uri))),
        type=types_pb2.LiteralType(blob=types_pb2.BlobType()),
        info=artifact_id_pb2.ArtifactInfo(user_metadata=attributes),
    )
    if partitions:
        values = {key: artifact_id_pb2.LabelValue(static_value=value) for key, value in partitions.items()}
        spec.partitions.CopyFrom(artifact_id_pb2.Partitions(value=values))
    if day is not None:
        spec.time_partition.key = "date"
        spec.time_partition.granularity = artifact_id_pb2.DAY
        spec.time_partition.value.time_value.FromDatetime(datetime(day.year, day.month, day.day, 11, tzinfo=UTC))
    if external_ref:
        spec.source.external_ref = external_ref
    return artifact_service_pb2.CreateArtifactRequest(
        artifact_id=artifact_pb2.ArtifactIdentifier(name=named(name), version=version), spec=spec
    )


async def publish(
    world: World, request: artifact_service_pb2.CreateArtifactRequest | None = None
) -> artifact_pb2.Artifact:
    """A second later than the last."""
    world.clock.advance(seconds=1)
    return (await world.artifacts.create_artifact(request or publication())).artifact


def condition(field: str, *values: str, function: list_pb2.Filter.Function = list_pb2.Filter.EQUAL) -> list_pb2.Filter:
    return list_pb2.Filter(function=function, field=field, values=values)


def listing(
    *filters: list_pb2.Filter, name: str | None = None, latest: bool = False, limit: int = 100, token: str = ""
) -> artifact_service_pb2.ListArtifactsRequest:
    return artifact_service_pb2.ListArtifactsRequest(
        request=list_pb2.ListRequest(limit=limit, token=token, filters=filters),
        project_id=PROJECT,
        name=name,
        latest_per_partition=latest,
    )


async def listed(
    world: World, *filters: list_pb2.Filter, name: str | None = None, latest: bool = False
) -> list[tuple[str, str]]:
    response = await world.artifacts.list_artifacts(listing(*filters, name=name, latest=latest))
    return [(found.artifact_id.name.name, found.artifact_id.version) for found in response.artifacts]
