"""Lists of versions, names and metadata keys."""

from __future__ import annotations

from datetime import date

import pytest
from connectrpc.code import Code
from flyteidl2.artifact import artifact_service_pb2 as pb
from flyteidl2.common import list_pb2

from tests.rpc.artifacts.conftest import World, refused
from tests.rpc.artifacts.publishing import PROJECT, condition, listed, listing, publication, publish

Filter = list_pb2.Filter


async def test_versions_are_found_by_what_was_published_with_them(world: World) -> None:
    await publish(world, publication("model", "v1", attributes={"flyte.io/kind": "model", "lab": "a%b"}))
    since = world.clock.now()
    await publish(world, publication("data", "v1", attributes={"flyte.io/kind": "data"}, external_ref="hf://x"))
    assert await listed(world) == [("data", "v1"), ("model", "v1")]
    assert await listed(world, name="model") == [("model", "v1")]
    kinds = condition("user_metadata.flyte.io/kind", "model", "other", function=Filter.VALUE_IN)
    assert await listed(world, kinds) == [("model", "v1")]
    assert await listed(world, condition("user_metadata.lab", function=Filter.EXISTS)) == [("model", "v1")]
    assert await listed(world, condition("user_metadata.lab", function=Filter.NOT_EXISTS)) == [("data", "v1")]
    assert await listed(world, condition("user_metadata.lab", "%", function=Filter.CONTAINS)) == [("model", "v1")]
    assert await listed(world, condition("source_external_ref", "hf://x")) == [("data", "v1")]
    later = condition("created_at", str(since // 1_000_000), function=Filter.GREATER_THAN)
    await refused(listed(world, later), Code.INVALID_ARGUMENT)
    later = condition("created_at", "2023-11-14T22:13:21Z", function=Filter.GREATER_THAN)
    assert await listed(world, later) == [("data", "v1")]


async def test_pages_follow_one_another_while_versions_are_published(world: World) -> None:
    for number in range(5):
        await publish(world, publication(version=f"v{number}"))
    first = await world.artifacts.list_artifacts(listing(limit=2))
    await publish(world, publication(version="new"))
    second = await world.artifacts.list_artifacts(listing(limit=2, token=first.token))
    third = await world.artifacts.list_artifacts(listing(limit=2, token=second.token))
    seen = [found.artifact_id.version for page in (first, second, third) for found in page.artifacts]
    assert seen == ["v4", "v3", "v2", "v1", "v0"]
    assert third.token == ""


async def test_names_are_listed_with_their_newest_version_and_partition(world: World) -> None:
    await publish(world, publication("events", "v1", day=date(2026, 9, 17), region="eu"))
    await publish(world, publication("events", "v2", day=date(2026, 9, 18), region="us"))
    await publish(world, publication("model", "v1"))
    request = pb.ListArtifactNamesRequest(project_id=PROJECT)
    groups = (await world.artifacts.list_artifact_names(request)).groups
    assert [(group.latest.artifact_id.name.name, group.versions) for group in groups] == [("model", 1), ("events", 2)]
    events = groups[1]
    assert events.latest.artifact_id.version == "v2"
    assert list(events.partition_schema.partition_keys) == ["region"]
    assert events.latest_time_partition.ToJsonString() == "2026-09-18T00:00:00Z"
    assert [dict(one.value)["region"].static_value for one in events.latest_partitions] == ["us"]
    request.request.filters.append(condition("name", "ven", function=Filter.CONTAINS))
    groups = (await world.artifacts.list_artifact_names(request)).groups
    assert [group.latest.artifact_id.name.name for group in groups] == ["events"]


async def test_metadata_keys_of_a_project_and_of_a_name(world: World) -> None:
    await publish(world, publication("model", attributes={"b": "1", "a": "1"}, region="eu"))
    await publish(world, publication("data", attributes={"c": "1"}))
    request = pb.ListArtifactMetadataKeysRequest(project_id=PROJECT)
    assert list((await world.artifacts.list_artifact_metadata_keys(request)).keys) == ["a", "b", "c"]
    request.name = "data"
    assert list((await world.artifacts.list_artifact_metadata_keys(request)).keys) == ["c"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (condition("unknown", "x"), "unknown"),
        (condition("time_partition", "today"), "time_partition"),
        (condition("partition.", "x"), "partition."),
        (condition("user_metadata.a"), "user_metadata.a"),
    ],
)
async def test_a_wrong_filter_is_named(world: World, wrong: list_pb2.Filter, named: str) -> None:
    assert named in await refused(listed(world, wrong), Code.INVALID_ARGUMENT)
