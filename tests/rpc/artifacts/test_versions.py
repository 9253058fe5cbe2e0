"""Publishing versions and getting them back."""

from __future__ import annotations

from datetime import date

import pytest
from connectrpc.code import Code
from flyteidl2.artifact import artifact_pb2
from flyteidl2.artifact import artifact_service_pb2 as pb
from flyteidl2.core import artifact_id_pb2

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from tests.rpc.artifacts.conftest import World, refused
from tests.rpc.artifacts.publishing import condition, listed, named, publication, publish


async def got(world: World, version: str | None = None) -> artifact_pb2.Artifact:
    return (await world.artifacts.get_artifact(pb.GetArtifactRequest(name=named(), version=version))).artifact


async def test_the_newest_version_is_got_unless_one_is_named(world: World) -> None:
    await publish(world, publication(version="v2", uri="s3://bucket/2"))
    await publish(world, publication(version="v1", uri="s3://bucket/1"))
    assert (await got(world)).artifact_id.version == "v1"
    older = await got(world, "v2")
    assert older.spec.value.scalar.blob.uri == "s3://bucket/2"
    stamp = older.spec.value.artifact_id
    assert (stamp.key.project, stamp.key.domain, stamp.key.name, stamp.version) == (
        "flytesnacks",
        "development",
        "model",
        "v2",
    )


async def test_publishing_the_same_again_is_answered_with_the_first(world: World) -> None:
    first = await publish(world)
    assert await publish(world) == first
    await refused(publish(world, publication(uri="s3://bucket/other")), Code.ALREADY_EXISTS)
    assert await got(world) == first


async def test_a_version_is_deleted_and_the_one_before_is_the_newest(world: World) -> None:
    await publish(world, publication(version="v1", attributes={"a": "1"}))
    await publish(world, publication(version="v2", attributes={"b": "1"}))
    gone = pb.DeleteArtifactRequest(artifact_id=artifact_pb2.ArtifactIdentifier(name=named(), version="v2"))
    await world.artifacts.delete_artifact(gone)
    assert (await got(world)).artifact_id.version == "v1"
    await refused(got(world, "v2"), Code.NOT_FOUND)
    await refused(world.artifacts.delete_artifact(gone), Code.NOT_FOUND)
    assert await listed(world, condition("user_metadata.b", "1")) == []


async def test_an_artifact_names_the_action_that_made_it(world: World) -> None:
    action = ActionId("flytesnacks", "development", "r1", "a0")
    row = ActionRow(id=action, parent=None, phase=Phase.RUNNING, action_type=1)
    await world.database.write(lambda tx: tx.actions.insert(row))
    request = publication()
    request.spec.source.task_action.action.name = "a0"
    request.spec.source.task_action.action.run.name = "r1"
    made = await publish(world, request)
    run = made.spec.source.task_action.action.run
    assert (run.project, run.domain, run.name) == ("flytesnacks", "development", "r1")
    await publish(world, publication("other"))
    assert await listed(world, condition("source_run", "r1")) == [("model", "v1")]
    assert await listed(world, condition("source_action", "a0")) == [("model", "v1")]
    request = publication(version="v2")
    request.spec.source.task_action.action.name = "a0"
    request.spec.source.task_action.action.run.name = "unknown"
    await refused(publish(world, request), Code.NOT_FOUND)
    request.spec.source.task_action.action.run.project = "other"
    assert "project" in await refused(publish(world, request), Code.INVALID_ARGUMENT)


async def test_parents_are_kept_with_the_version(world: World) -> None:
    request = publication()
    request.spec.parent_artifacts.add(key=artifact_id_pb2.ArtifactKey(name="raw"), version="7")
    made = await publish(world, request)
    assert [(one.key.project, one.key.name, one.version) for one in made.spec.parent_artifacts] == [
        ("flytesnacks", "raw", "7")
    ]


def without_value() -> pb.CreateArtifactRequest:
    request = publication()
    request.spec.ClearField("value")
    return request


def with_a_bound_partition() -> pb.CreateArtifactRequest:
    request = publication(region="eu")
    request.spec.partitions.value["region"].input_binding.var = "x"
    return request


def without_granularity() -> pb.CreateArtifactRequest:
    request = publication(day=date(2026, 9, 17))
    request.spec.time_partition.granularity = artifact_id_pb2.UNSET
    return request


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.CreateArtifactRequest(), "artifact_id"),
        (publication(name="a b"), "artifact_id.name.name"),
        (publication(version=""), "artifact_id.version"),
        (publication(version="a\0b"), "artifact_id.version"),
        (without_value(), "spec.value"),
        (with_a_bound_partition(), "spec.partitions"),
        (without_granularity(), "spec.time_partition.granularity"),
        (publication(attributes={"": "x"}), "spec.info.user_metadata"),
    ],
)
async def test_what_is_wrong_with_a_publication_is_named(
    world: World, request_: pb.CreateArtifactRequest, field: str
) -> None:
    assert field in await refused(publish(world, request_), Code.INVALID_ARGUMENT)
    assert await listed(world) == []


async def test_projects_and_domains_must_exist(world: World) -> None:
    request = publication()
    request.artifact_id.name.project = "unknown"
    await refused(publish(world, request), Code.NOT_FOUND)
    request = publication()
    request.artifact_id.name.domain = "unknown"
    await refused(publish(world, request), Code.NOT_FOUND)
