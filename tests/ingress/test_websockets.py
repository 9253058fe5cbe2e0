"""WebSockets through the ingress: a real client and a real server with only bytes in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from flyte_binary.app.ingress.ports import AppStopped
from tests.ingress.conftest import APP, LABEL, PREFIX, Ingress
from tests.waiting import until


@asynccontextmanager
async def echoing(ingress: Ingress) -> AsyncGenerator[list[ServerConnection]]:
    seen: list[ServerConnection] = []

    async def handler(connection: ServerConnection) -> None:
        seen.append(connection)
        async for message in connection:
            await connection.send(message)

    def chosen(_: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        return next(iter(offered), None)

    async with serve(handler, "127.0.0.1", 0, select_subprotocol=chosen, max_size=None) as server:
        ingress.activator.port = next(iter(server.sockets)).getsockname()[1]
        yield seen


def address(ingress: Ingress, path: str = "/ws?x=1") -> str:
    return f"ws://127.0.0.1:{ingress.port}{PREFIX}{path}"


async def test_messages_go_both_ways_with_subprotocol_and_compression(ingress: Ingress) -> None:
    async with echoing(ingress) as seen:
        async with connect(address(ingress), subprotocols=[Subprotocol("chat")], max_size=None) as client:
            for message in ("hello", b"\0" * 5_000_000):
                await client.send(message)
                assert await client.recv() == message
            assert client.subprotocol == "chat"
            assert client.protocol.extensions
            assert ingress.activator.leased == 1
            request = seen[0].request
            assert request is not None
            assert request.path == "/ws?x=1"
            assert request.headers["X-Forwarded-Prefix"] == PREFIX
        await until(lambda: ingress.activator.leased == 0)


async def test_an_app_is_reached_by_its_host_too(ingress: Ingress) -> None:
    async with echoing(ingress):
        url = f"ws://{LABEL}.localhost:{ingress.port}/ws"
        async with connect(url, host="127.0.0.1", port=ingress.port) as client:
            await client.send("hello")
            assert await client.recv() == "hello"


async def test_when_either_side_closes_the_other_sees_it(ingress: Ingress) -> None:
    async with echoing(ingress) as seen:
        async with connect(address(ingress)) as client:
            await client.send("x")
            await client.recv()
            await seen[0].close(4001, "enough")
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4001
        client = await connect(address(ingress))
        await client.send("x")
        await client.recv()
        client.transport.abort()
        async with asyncio.timeout(5):
            await seen[1].wait_closed()
    await until(lambda: ingress.activator.leased == 0)


async def test_a_stop_of_the_server_ends_them(ingress: Ingress) -> None:
    async with echoing(ingress):
        client = await connect(address(ingress))
        await client.send("x")
        await client.recv()
        ingress.server.stop()
        async with asyncio.timeout(5):
            await client.wait_closed()
        await until(lambda: ingress.activator.leased == 0)


async def test_without_an_app_or_a_replica_the_upgrade_is_refused_with_the_reason(ingress: Ingress) -> None:
    async with echoing(ingress):
        for path, status in (("/apps/flytesnacks/development/none/ws", 404), ("/v2/x", 404), ("/nothing", 404)):
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"ws://127.0.0.1:{ingress.port}{path}")
            assert refused.value.response.status_code == status
        ingress.activator.refusal = AppStopped(APP)
        with pytest.raises(InvalidStatus) as refused:
            await connect(address(ingress))
        assert refused.value.response.status_code == 503
        assert b"is stopped" in refused.value.response.body


async def test_a_server_name_of_a_strangers_is_refused(ingress: Ingress) -> None:
    async with echoing(ingress):
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://evil.example{PREFIX}/ws", host="127.0.0.1", port=ingress.port)
        assert refused.value.response.status_code == 403


async def test_an_app_that_refuses_the_upgrade_is_heard(ingress: Ingress) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno")
        await writer.drain()
        writer.close()

    await ingress.serves_raw(app)
    with pytest.raises(InvalidStatus) as refused:
        await connect(address(ingress))
    assert refused.value.response.status_code == 401
