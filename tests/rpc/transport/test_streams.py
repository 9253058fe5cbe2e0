"""Streams that end before they are complete, on a real port."""

from __future__ import annotations

import asyncio
import time

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.workflow import internal_run_service_pb2
from flyteidl2.workflow.run_service_connect import RunServiceClient
from structlog.testing import capture_logs

from tests.rpc.transport.conftest import Served, World
from tests.rpc.transport.probe import request_for, watch_for
from tests.rpc.transport.raw import connection, end_of_stream, envelope

WATCH = "/flyteidl2.workflow.RunService/WatchRuns"
RECORD = "/flyteidl2.workflow.InternalRunService/RecordActionStream"
STREAM = {"content-type": "application/connect+proto"}


async def within(seconds: float, event: asyncio.Event) -> None:
    async with asyncio.timeout(seconds):
        await event.wait()


async def test_a_client_that_leaves_an_idle_stream_closes_its_generator_at_once(served: Served) -> None:
    probe = served.world.probe
    async with connection(served.port) as client:
        await client.send(WATCH, STREAM, envelope(watch_for("p")))
        await client.head()
        assert b"first" in await client.chunk()
    await within(1, probe.closed)
    assert probe.watching == 0


async def test_a_client_that_leaves_before_the_first_message_is_noticed_too(served: Served) -> None:
    probe = served.world.probe
    async with connection(served.port) as client:
        await client.send(WATCH, STREAM, envelope(watch_for("silent")))
        await within(1, probe.entered)
    await within(1, probe.closed)


async def test_a_client_that_leaves_is_logged_as_canceled_without_traceback(served: Served) -> None:
    with capture_logs() as logs:
        async with connection(served.port) as client:
            await client.send(WATCH, STREAM, envelope(watch_for("p")))
            await client.head()
        await within(1, served.world.probe.closed)
        async with asyncio.timeout(1):
            while not logs:  # noqa: ASYNC110 - the log has no event to wait on
                await asyncio.sleep(0)
    assert [(line["event"], line["code"]) for line in logs] == [("rpc", "canceled")]


async def test_a_stream_with_nothing_to_tell_sends_its_headers_early(served: Served) -> None:
    async with connection(served.port) as client:
        await client.send(WATCH, STREAM, envelope(watch_for("silent")))
        assert "200 OK" in await client.head()
        served.world.probe.more.set()
        assert b"first" in await client.chunk()


async def test_messages_reach_the_client_as_they_come(client: RunServiceClient, world: World) -> None:
    stream = client.watch_runs(watch_for("p"))
    first = await anext(stream)
    world.probe.more.set()
    rest = [message async for message in stream]
    assert [message.runs[0].action.id.run.name for message in [first, *rest]] == ["first", "second"]


async def test_a_stream_ends_at_the_clients_deadline(served: Served) -> None:
    client = RunServiceClient(served.url)
    stream = client.watch_runs(watch_for("p"), timeout_ms=200)
    await anext(stream)
    with pytest.raises(ConnectError) as caught:
        async with asyncio.timeout(5):
            await anext(stream)
    assert caught.value.code is Code.DEADLINE_EXCEEDED
    await within(1, served.world.probe.closed)


async def test_the_deadline_is_told_by_the_server_and_not_only_by_the_client(served: Served) -> None:
    async with connection(served.port) as client:
        await client.send(WATCH, STREAM | {"connect-timeout-ms": "100"}, envelope(watch_for("silent")))
        await client.head()
        assert end_of_stream(await client.chunk())["error"]["code"] == "deadline_exceeded"
    assert served.world.probe.watching == 0


async def test_a_drain_ends_streams_as_if_they_were_complete(served: Served) -> None:
    async with connection(served.port) as client:
        await client.send(WATCH, STREAM, envelope(watch_for("p")))
        await client.head()
        await client.chunk()
        served.world.settings.drain.begin()
        assert end_of_stream(await client.chunk()) == {}
        assert await client.chunk() == b""
    assert served.world.probe.watching == 0


async def test_a_new_stream_is_told_to_go_elsewhere_while_the_server_drains(
    world: World, client: RunServiceClient
) -> None:
    world.settings.drain.begin()
    with pytest.raises(ConnectError) as caught:
        await anext(client.watch_runs(watch_for("p")))
    assert caught.value.code is Code.UNAVAILABLE
    assert (await client.get_run_details(request_for("r1"))).details.action.id.run.name == "r1"


async def test_with_twenty_open_watches_and_one_that_does_not_read_the_server_is_down_in_under_two_seconds(
    served: Served,
) -> None:
    probe = served.world.probe
    client = RunServiceClient(served.url)
    streams = [client.watch_runs(watch_for("p")) for _ in range(20)]
    for stream in streams:
        await anext(stream)
    async with connection(served.port) as stuck:
        await stuck.send(WATCH, STREAM, envelope(watch_for("large")))
        await stuck.head()
        started = time.monotonic()
        served.server.stop()
        ends = await asyncio.gather(*(anext(stream, "ended") for stream in streams))
        async with asyncio.timeout(5):
            await asyncio.shield(served.task)
        took = time.monotonic() - started
    assert ends == ["ended"] * 20
    assert probe.watching == 0
    assert took < 2, f"{took:.2f} s"


async def test_a_call_in_progress_is_finished_before_the_server_is_down(served: Served) -> None:
    client = RunServiceClient(served.url)
    call = asyncio.create_task(client.get_run_details(request_for("slow")))
    await within(1, served.world.probe.entered)
    served.server.stop()
    done, _ = await asyncio.wait([served.task], timeout=0.3)
    assert not done
    served.world.probe.proceed.set()
    assert (await call).details.action.id.run.name == "slow"


async def test_a_second_stop_cuts_a_call_that_does_not_end(served: Served) -> None:
    client = RunServiceClient(served.url)
    call = asyncio.create_task(client.get_run_details(request_for("slow")))
    await within(1, served.world.probe.entered)
    served.server.stop()
    served.server.stop()
    async with asyncio.timeout(3):
        await asyncio.shield(served.task)
    call.cancel()
    await asyncio.wait([call])


async def test_requests_of_a_bidirectional_stream_are_answered_one_by_one(served: Served) -> None:
    request = envelope(internal_run_service_pb2.RecordActionStreamRequest())
    async with connection(served.port) as client:
        await client.send(RECORD, STREAM, request * 2)
        await client.head()
        assert await client.chunk() == await client.chunk() == b"\0\0\0\0\0"
        assert end_of_stream(await client.chunk()) == {}


async def test_a_client_that_leaves_a_bidirectional_stream_closes_its_generator(served: Served) -> None:
    request = envelope(internal_run_service_pb2.RecordActionStreamRequest())
    async with connection(served.port) as client:
        await client.send(RECORD, STREAM, request, length=len(request) + 100)
        await within(1, served.world.internal.entered)
    await within(1, served.world.internal.closed)


async def test_a_drain_ends_a_bidirectional_stream(served: Served) -> None:
    request = envelope(internal_run_service_pb2.RecordActionStreamRequest())
    async with connection(served.port) as client:
        await client.send(RECORD, STREAM, request, length=len(request) + 100)
        await client.head()
        await client.chunk()
        served.world.settings.drain.begin()
        assert end_of_stream(await client.chunk()) == {}
    await within(1, served.world.internal.closed)
