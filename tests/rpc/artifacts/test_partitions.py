"""Partitions: what a name is partitioned by, and what is found by them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from connectrpc.code import Code
from flyteidl2.artifact import artifact_pb2
from flyteidl2.artifact import artifact_service_pb2 as pb
from flyteidl2.common import list_pb2
from flyteidl2.core import artifact_id_pb2

from tests.rpc.artifacts.conftest import World, refused
from tests.rpc.artifacts.publishing import PROJECT, condition, listed, named, publication, publish

FIRST, SECOND = date(2026, 9, 17), date(2026, 9, 18)


def schema(*keys: str) -> artifact_pb2.ArtifactPartitionSchema:
    time = artifact_pb2.TimePartitionKey(key="date", granularity=artifact_id_pb2.DAY)
    return artifact_pb2.ArtifactPartitionSchema(time_partition=time, partition_keys=keys)


async def declare(world: World, found: artifact_pb2.ArtifactPartitionSchema) -> None:
    await world.artifacts.declare_artifact(pb.DeclareArtifactRequest(name=named(), partition_schema=found))


async def schema_of(world: World) -> pb.GetArtifactSchemaResponse:
    return await world.artifacts.get_artifact_schema(pb.GetArtifactSchemaRequest(name=named()))


async def values(world: World, key: str, *filters: list_pb2.Filter) -> list[str]:
    request = pb.ListPartitionValuesRequest(
        project_id=PROJECT, name="model", key=key, request=list_pb2.ListRequest(limit=1000, filters=filters)
    )
    return list((await world.artifacts.list_partition_values(request)).values)


async def three(world: World) -> None:
    await publish(world, publication(version="v1", day=FIRST, region="eu"))
    await publish(world, publication(version="v2", day=FIRST, region="us"))
    await publish(world, publication(version="v3", day=SECOND, region="eu"))
    await publish(world, publication(version="v4", day=FIRST, region="eu", uri="s3://bucket/again"))


async def test_a_declared_schema_stands_against_another(world: World) -> None:
    await refused(schema_of(world), Code.NOT_FOUND)
    await declare(world, schema("region", "tier"))
    await declare(world, schema("tier", "region"))
    found = await schema_of(world)
    assert found.declared
    assert found.partition_schema.time_partition.key == "date"
    assert "date (day), region" in await refused(declare(world, schema("region")), Code.FAILED_PRECONDITION)
    assert (await schema_of(world)) == found


async def test_the_first_version_fixes_the_schema_and_another_one_says_that_it_differs(world: World) -> None:
    first = await publish(world, publication(day=FIRST, region="eu"))
    assert not first.HasField("partition_schema_mismatch")
    assert not (await schema_of(world)).declared
    other = await publish(world, publication(version="v2", region="eu"))
    mismatch = other.partition_schema_mismatch
    assert mismatch.expected.time_partition.key == "date"
    assert list(mismatch.actual.partition_keys) == ["region"]
    await refused(declare(world, schema()), Code.FAILED_PRECONDITION)


async def test_a_name_without_versions_and_declaration_has_no_schema_again(world: World) -> None:
    await publish(world, publication(region="eu"))
    identifier = artifact_pb2.ArtifactIdentifier(name=named(), version="v1")
    await world.artifacts.delete_artifact(pb.DeleteArtifactRequest(artifact_id=identifier))
    await refused(schema_of(world), Code.NOT_FOUND)
    await declare(world, schema("tier"))


async def test_times_are_beginnings_of_their_partition(world: World) -> None:
    made = await publish(world, publication(day=FIRST))
    assert made.spec.time_partition.value.time_value.ToDatetime(tzinfo=UTC) == datetime(2026, 9, 17, tzinfo=UTC)


async def test_partitions_are_found_by_their_values_and_times(world: World) -> None:
    await three(world)
    assert await listed(world, condition("partition.region", "us")) == [("model", "v2")]
    either = condition("partition.region", "us", "eu", function=list_pb2.Filter.VALUE_IN)
    assert len(await listed(world, either)) == 4
    assert await listed(world, condition("time_partition", "2026-09-18T00:00:00Z")) == [("model", "v3")]
    since = condition("time_partition", "2026-09-18T00:00:00Z", function=list_pb2.Filter.GREATER_THAN_OR_EQUAL)
    until = condition("time_partition", "2026-09-30T00:00:00Z", function=list_pb2.Filter.LESS_THAN_OR_EQUAL)
    assert await listed(world, since, until) == [("model", "v3")]


async def test_the_newest_version_of_each_partition(world: World) -> None:
    await three(world)
    assert await listed(world, name="model", latest=True) == [("model", "v4"), ("model", "v3"), ("model", "v2")]
    assert "name" in await refused(listed(world, latest=True), Code.INVALID_ARGUMENT)


async def test_values_of_a_key_are_listed_once_and_may_be_narrowed(world: World) -> None:
    await three(world)
    assert await values(world, "region") == ["eu", "us"]
    assert await values(world, "region", condition("time_partition", "2026-09-18T00:00:00Z")) == ["eu"]
    assert await values(world, "date") == ["2026-09-17T00:00:00Z", "2026-09-18T00:00:00Z"]
    assert await values(world, "date", condition("partition.region", "us")) == ["2026-09-17T00:00:00Z"]
    assert await values(world, "unknown") == []
