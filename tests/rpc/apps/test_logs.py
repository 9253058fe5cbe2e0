"""TailLogs: replicas, lines, targets, the limit."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime

from connectrpc.code import Code
from flyteidl2.app import app_logs_payload_pb2 as pb
from flyteidl2.app import replica_definition_pb2

from flyte_binary.app.backend import ReplicaLines, Replicas
from flyte_binary.domain.logs import LogLine
from tests.rpc.apps.conftest import World, refused
from tests.rpc.apps.messages import APP, app_message
from tests.waiting import until

AT = datetime(2026, 1, 1, tzinfo=UTC)
OF_APP = pb.TailLogsRequest(app_id=APP.to_proto())


async def tail(world: World, request: pb.TailLogsRequest) -> list[pb.TailLogsResponse]:
    return [response async for response in world.logs.tail_logs(request)]


async def test_the_replicas_come_first_then_their_lines_with_times(world: World) -> None:
    await world.create(app_message())
    world.app_logs.events = [Replicas(("my-app-1",)), ReplicaLines("my-app-1", [LogLine("hello\n", AT)])]
    first, second = await tail(world, OF_APP)
    assert [replica.name for replica in first.replicas.replicas] == ["my-app-1"]
    assert first.replicas.replicas[0].app_id.name == "my-app"
    (logs,) = second.batches.logs
    assert logs.replica_id.name == "my-app-1"
    assert [(line.message, line.timestamp.ToDatetime(UTC)) for line in logs.structured_lines] == [("hello\n", AT)]


async def test_one_replica_is_asked_for_by_its_name(world: World) -> None:
    await world.create(app_message())
    world.app_logs.events = [Replicas(("my-app-2",))]
    replica = replica_definition_pb2.ReplicaIdentifier(app_id=APP.to_proto(), name="my-app-2")
    await tail(world, pb.TailLogsRequest(replica_id=replica))
    assert world.app_logs.asked == [(APP, "my-app-2")]


async def test_an_app_that_does_not_exist_or_has_no_replica_has_no_log(world: World) -> None:
    await refused(tail(world, OF_APP), Code.NOT_FOUND)
    await world.create(app_message())
    await refused(tail(world, OF_APP), Code.NOT_FOUND)


async def test_requests_without_a_target_are_refused(world: World) -> None:
    nameless = replica_definition_pb2.ReplicaIdentifier(app_id=APP.to_proto())
    homeless = replica_definition_pb2.ReplicaIdentifier(name="my-app-1")
    for request, field in (
        (pb.TailLogsRequest(), "target"),
        (pb.TailLogsRequest(replica_id=nameless), "replica_id.name"),
        (pb.TailLogsRequest(replica_id=homeless), "replica_id.app_id"),
    ):
        assert field in await refused(tail(world, request), Code.INVALID_ARGUMENT)


async def test_one_stream_too_many_is_refused_and_a_client_that_leaves_makes_room(world: World) -> None:
    await world.create(app_message())
    world.app_logs.events, world.app_logs.goes_on = [Replicas(("my-app-1",))], True
    async with asyncio.timeout(10), aclosing(world.logs.tail_logs(OF_APP)) as first:
        await anext(first)
        async with aclosing(world.logs.tail_logs(OF_APP)) as second:
            await anext(second)
            await refused(tail(world, OF_APP), Code.RESOURCE_EXHAUSTED)
        await until(lambda: world.app_logs.open == 1)
        async with aclosing(world.logs.tail_logs(OF_APP)) as third:
            await anext(third)
