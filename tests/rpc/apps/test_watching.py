"""Watch: what is there, each change, and what the SDK needs of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

from connectrpc.code import Code
from flyteidl2.app import app_payload_pb2 as pb
from flyteidl2.common import identifier_pb2

from flyte_binary.app.watch import AppWatches
from flyte_binary.domain.ids import AppId
from tests.rpc.apps.conftest import Status, World, refused
from tests.rpc.apps.messages import APP, app_message

PROJECT = identifier_pb2.ProjectIdentifier(name="flytesnacks", domain="development")


def kind(event: pb.WatchResponse) -> tuple[str, str, int]:
    """Which event, of which app, and the status that it ends with."""
    match event.WhichOneof("event"):
        case "create_event":
            app = event.create_event.app
        case "update_event":
            app = event.update_event.updated_app
        case _:
            app = event.delete_event.app
    conditions = app.status.conditions
    return str(event.WhichOneof("event")), app.metadata.id.name, conditions[-1].deployment_status if conditions else 0


async def following(events: AsyncIterator[pb.WatchResponse], number: int) -> list[tuple[str, str, int]]:
    async with asyncio.timeout(5):
        return [kind(await anext(events)) for _ in range(number)]


async def test_a_watch_begins_with_what_is_there_and_says_it_as_an_update_too(world: World) -> None:
    await world.create(app_message())
    await world.create(app_message(AppId("flytesnacks", "development", "other-app")))
    async with aclosing(world.apps.watch(pb.WatchRequest(app_id=APP.to_proto()))) as events:
        assert await following(events, 2) == [
            ("create_event", "my-app", Status.DEPLOYMENT_STATUS_PENDING),
            ("update_event", "my-app", Status.DEPLOYMENT_STATUS_PENDING),
        ]


async def test_a_watch_sees_an_app_come_change_and_go(world: World) -> None:
    world.start_passes()
    async with aclosing(world.apps.watch(pb.WatchRequest(project=PROJECT))) as events:
        watching = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.05)
        await world.create(app_message())
        assert kind(await watching)[:2] == ("create_event", "my-app")
        await world.until(APP, Status.DEPLOYMENT_STATUS_DEPLOYING)
        world.backend.becomes(APP, Status.DEPLOYMENT_STATUS_ACTIVE)
        last = ("", "", 0)
        while last[2] != Status.DEPLOYMENT_STATUS_ACTIVE:
            (last,) = await following(events, 1)
        await world.apps.delete(pb.DeleteRequest(app_id=APP.to_proto()))
        assert (await following(events, 1))[0][:2] == ("delete_event", "my-app")


async def test_an_app_of_the_same_name_elsewhere_is_not_seen(world: World) -> None:
    await world.create(app_message())
    async with aclosing(world.apps.watch(pb.WatchRequest(app_id=APP.to_proto()))) as events:
        await following(events, 2)
        await world.create(app_message(AppId("other", "development", "my-app")))
        await world.create(app_message(greeting="bye"))
        async with asyncio.timeout(5):
            event = await anext(events)
        assert event.update_event.updated_app.metadata.id.project == "flytesnacks"
        assert event.update_event.updated_app.metadata.revision == 2
        assert event.update_event.old_app.metadata.revision == 1


async def test_what_is_known_of_one_app_is_said_again_and_again(world: World) -> None:
    await world.create(app_message())
    watches = AppWatches(world.database, world.hub, lambda _: app_message(), repeat_seconds=0.01)
    async with aclosing(watches.follow(pb.WatchRequest(app_id=APP.to_proto()))) as events:
        assert [kind(await anext(events))[0] for _ in range(3)] == ["create_event", "update_event", "update_event"]


async def test_half_a_project_cannot_be_watched(world: World) -> None:
    async def watch() -> None:
        async for _ in world.apps.watch(pb.WatchRequest(project=identifier_pb2.ProjectIdentifier(name="flytesnacks"))):
            raise AssertionError("an event came")

    assert "project.domain" in await refused(watch(), Code.INVALID_ARGUMENT)
