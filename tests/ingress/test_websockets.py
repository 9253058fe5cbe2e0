"""WebSockets through the ingress: a real client and a real server with only bytes in between."""

from __future__ import annotations

import asyncio
import contextlib
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


async def test_a_host_that_is_no_apps_is_not_the_servers_either(ingress: Ingress) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://gone.localhost:{ingress.port}/ws", host="127.0.0.1", port=ingress.port)
    assert refused.value.response.status_code == 404
    assert b"no app at gone.localhost" in refused.value.response.body


async def test_an_upgrade_does_not_share_its_connection_with_an_answer(ingress: Ingress) -> None:
    go_on, seen = asyncio.Event(), 0

    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        await reader.readuntil(b"\r\n\r\n")
        await go_on.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    await ingress.serves_raw(app)
    answer = await ingress.ask(f"GET {PREFIX}/ HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() + upgrade_to("x"))
    go_on.set()
    assert answer == b""
    assert seen <= 1


async def test_a_server_name_of_a_strangers_is_refused(ingress: Ingress) -> None:
    async with echoing(ingress):
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://evil.example{PREFIX}/ws", host="127.0.0.1", port=ingress.port)
        assert refused.value.response.status_code == 403


async def test_a_client_that_leaves_waits_for_a_replica_no_longer(ingress: Ingress) -> None:
    ingress.activator.ready = asyncio.Event()
    _, writer = await ingress.raw(upgrade_to("websocket"))
    await until(lambda: ingress.activator.waiting == 1)
    writer.close()
    await until(lambda: ingress.activator.waiting == 0)


async def test_after_a_refused_upgrade_the_connection_is_not_the_apps(ingress: Ingress) -> None:
    """A proxy in front that keeps connections would send it the requests of others."""
    seen: list[bytes] = []

    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno")
        seen.append(await reader.read())

    await ingress.serves_raw(app)
    after = b"POST /flyteidl2.project.ProjectService/X HTTP/1.1\r\nHost: localhost\r\nCookie: secret\r\n\r\n"
    answer = await ingress.ask(upgrade_to("websocket") + after)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1") == 1
    await until(lambda: len(seen) == 2)
    assert seen[1] == b""


async def test_any_protocol_can_be_changed_to(ingress: Ingress) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"upgrade: shout/1" in head
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: shout/1\r\n")
        writer.write(b"Set-Cookie: a=1; Path=/\r\n\r\nWELCOME ")
        while data := await reader.read(1000):
            writer.write(data.upper())

    await ingress.serves_raw(app)
    reader, writer = await ingress.raw(upgrade_to("shout/1"))
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"connection: Upgrade\r\nupgrade: shout/1" in head
        assert f"a=1; Path={PREFIX}/".encode() in head
        writer.write(b"hello")
        assert await reader.readexactly(13) == b"WELCOME HELLO"
    writer.close()
    await until(lambda: ingress.activator.leased == 0)


async def test_an_offer_of_http_2_is_an_ordinary_request(ingress: Ingress) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            plain = b"http2-settings" not in head and b"upgrade" not in head
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n" + (b"ok" if plain else b"no"))

    await ingress.serves_raw(app)
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQAAP__"}
    for _ in range(2):
        assert (await ingress.client.get(f"{ingress.url}/", headers=offer)).content == b"ok"
    health = f"http://127.0.0.1:{ingress.port}/healthz"
    assert (await ingress.client.get(health, headers=offer)).status_code == 200


async def test_an_upgrade_has_the_time_of_the_app_only_until_it_is_one(ingress: Ingress) -> None:
    go_on = asyncio.Event()

    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/silent" not in await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n")
            await go_on.wait()
            writer.write(b"late")
        await reader.read()

    await ingress.serves_raw(app)
    ingress.activator.request_timeout = 0.05
    assert (await ingress.ask(upgrade_to("x", "/silent"))).startswith(b"HTTP/1.1 504")
    reader, writer = await ingress.raw(upgrade_to("x"))
    async with asyncio.timeout(5):
        await reader.readuntil(b"\r\n\r\n")
        asyncio.get_running_loop().call_later(0.2, go_on.set)
        assert await reader.readexactly(4) == b"late"
    writer.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegin",
    ],
    ids=["nothing", "no protocol", "begun"],
)
async def test_a_replica_that_dies_over_an_upgrade_is_not_taken_for_an_answer(ingress: Ingress, answer: bytes) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    await ingress.serves_raw(app)
    reader, writer = await ingress.raw(upgrade_to("x"))
    async with asyncio.timeout(5):
        if b"begin" in answer:
            with pytest.raises(ConnectionResetError):
                await reader.read()
        else:
            assert (await reader.readline()).startswith(b"HTTP/1.1 502")
    writer.close()


async def test_a_side_that_reads_slowly_is_waited_for(ingress: Ingress) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n")
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 100_000_000:
                writer.write(b"x" * 100_000)
                async with asyncio.timeout(0.5):
                    await writer.drain()
                sent += 100_000
        stalled.set_result(sent)
        await reader.read()

    stalled: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    await ingress.serves_raw(app)
    reader, writer = await ingress.raw(upgrade_to("x"))
    async with asyncio.timeout(20):
        await reader.readuntil(b"\r\n\r\n")
        assert await stalled < 50_000_000
    writer.close()


def upgrade_to(protocol: str, path: str = "/") -> bytes:
    return (
        f"GET {PREFIX}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n"
    ).encode()


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
