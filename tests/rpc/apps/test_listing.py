"""List: scopes, filters, orders, pages, counts."""

from __future__ import annotations

from flyteidl2.app import app_payload_pb2 as pb
from flyteidl2.common import identifier_pb2, list_pb2
from flyteidl2.core import artifact_id_pb2

from flyte_binary.domain.ids import AppId
from tests.rpc.apps.conftest import Status, World
from tests.rpc.apps.messages import STOPPED, app_message

PROJECT = identifier_pb2.ProjectIdentifier(organization="127", name="flytesnacks", domain="development")


def where(field: str, function: str, *values: str) -> list_pb2.Filter:
    return list_pb2.Filter(field=field, function=list_pb2.Filter.Function.Value(function), values=values)


async def names(world: World, request: pb.ListRequest) -> list[str]:
    found: list[str] = []
    while True:
        response = await world.apps.list(request)
        found += [app.metadata.id.name for app in response.apps]
        request.request.token = response.token
        if not response.token:
            return found


async def some(world: World) -> None:
    for name, project, domain in (
        ("a", "flytesnacks", "development"),
        ("b", "flytesnacks", "development"),
        ("c", "flytesnacks", "production"),
        ("d", "other", "development"),
    ):
        world.clock.advance(seconds=1)
        await world.create(app_message(AppId(project, domain, name)))


async def test_a_list_is_of_a_project_or_of_everything_the_newest_first(world: World) -> None:
    await some(world)
    whole_project = identifier_pb2.ProjectIdentifier(name="flytesnacks")
    cluster = identifier_pb2.ClusterIdentifier(name="any")
    for request, expected in (
        (pb.ListRequest(), ["d", "c", "b", "a"]),
        (pb.ListRequest(org="127"), ["d", "c", "b", "a"]),
        (pb.ListRequest(cluster_id=cluster), ["d", "c", "b", "a"]),
        (pb.ListRequest(project=PROJECT), ["b", "a"]),
        (pb.ListRequest(project=whole_project), ["c", "b", "a"]),
    ):
        assert await names(world, request) == expected


async def test_pages_of_one_hold_everything_once_also_when_apps_come_meanwhile(world: World) -> None:
    await some(world)
    first = await world.apps.list(pb.ListRequest(request=list_pb2.ListRequest(limit=1)))
    world.clock.advance(seconds=1)
    await world.create(app_message(AppId("other", "development", "new")))
    request = pb.ListRequest(request=list_pb2.ListRequest(limit=1, token=first.token))
    assert [first.apps[0].metadata.id.name, *await names(world, request)] == ["d", "c", "b", "a"]


async def test_apps_are_found_by_their_status_as_the_sdk_asks(world: World) -> None:
    world.start_passes()
    await some(world)
    await world.create(app_message(AppId("flytesnacks", "development", "e"), desired_state=STOPPED))
    await world.until(AppId("flytesnacks", "development", "e"), Status.DEPLOYMENT_STATUS_STOPPED)
    for name in "ab":
        await world.until(AppId("flytesnacks", "development", name), Status.DEPLOYMENT_STATUS_DEPLOYING)
    stopped = where("status_phase", "EQUAL", "DEPLOYMENT_STATUS_STOPPED")
    either = where("status_phase", "VALUE_IN", "DEPLOYMENT_STATUS_STOPPED", "DEPLOYMENT_STATUS_DEPLOYING")
    for condition, expected in ((stopped, ["e"]), (either, ["a", "b", "e"])):
        request = pb.ListRequest(project=PROJECT, request=list_pb2.ListRequest(filters=[condition]))
        assert sorted(await names(world, request)) == expected


async def test_the_total_count_is_of_all_pages(world: World) -> None:
    await some(world)
    request = pb.ListRequest(project=PROJECT, request=list_pb2.ListRequest(limit=1), include_total_count=True)
    assert (await world.apps.list(request)).total_count == 2


async def test_apps_are_sorted_by_name(world: World) -> None:
    await some(world)
    by_name = list_pb2.Sort(key="name", direction=list_pb2.Sort.ASCENDING)
    request = pb.ListRequest(request=list_pb2.ListRequest(sort_by_fields=[by_name]))
    assert await names(world, request) == ["a", "b", "c", "d"]


async def test_apps_are_found_by_the_artifact_that_they_consume(world: World) -> None:
    await some(world)
    app = app_message(AppId("flytesnacks", "development", "model-server"))
    key = artifact_id_pb2.ArtifactKey(project="flytesnacks", domain="development", name="model")
    app.spec.inputs.items.add(name="model", artifact_id=artifact_id_pb2.ArtifactVersionId(key=key, version="v7"))
    await world.create(app)
    wanted = pb.ConsumedArtifactFilter(project="flytesnacks", domain="development", name="model")
    assert await names(world, pb.ListRequest(artifact=wanted)) == ["model-server"]
    wanted.version = "v8"
    assert await names(world, pb.ListRequest(artifact=wanted)) == []
    app.spec.inputs.ClearField("items")
    await world.create(app)
    wanted.version = "v7"
    assert await names(world, pb.ListRequest(artifact=wanted)) == []
