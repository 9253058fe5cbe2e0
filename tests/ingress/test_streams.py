"""Bodies as they come, clients and replicas that go away, connections that are kept."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any

import httpx
import psutil
import pytest

from tests.ingress.conftest import PREFIX, Ingress, body_of, reply
from tests.waiting import until

MIB = 1024 * 1024
BLOCK = b"x" * MIB


async def test_events_arrive_one_by_one(ingress: Ingress) -> None:
    seen = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        await seen.wait()
        await send({"type": "http.response.body", "body": b"data: 2\n\n", "more_body": False})

    await ingress.serves(app)
    async with asyncio.timeout(10), ingress.client.stream("GET", f"{ingress.url}/") as answer:
        chunks = answer.aiter_raw()
        assert await anext(chunks) == b"data: 1\n\n"
        seen.set()
        assert await anext(chunks) == b"data: 2\n\n"


class Memory:
    """How much more of it this process, which is client, server and app, has had meanwhile."""

    def __init__(self) -> None:
        self._process = psutil.Process(os.getpid())
        self._before = self._process.memory_info().rss
        self.more = 0

    def look(self) -> None:
        self.more = max(self.more, self._process.memory_info().rss - self._before)


async def test_an_upload_of_a_gigabyte_is_passed_on_without_being_kept(ingress: Ingress) -> None:
    taken, memory = 0, Memory()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal taken
        more = True
        while more:
            message = await receive()
            taken += len(message.get("body", b""))
            more = message.get("more_body", False)
        await reply(send, b"")

    async def blocks() -> AsyncIterator[bytes]:
        for number in range(1024):
            yield BLOCK
            if number % 64 == 0:
                memory.look()

    await ingress.serves(app)
    assert (await ingress.client.post(f"{ingress.url}/", content=blocks())).status_code == 200
    assert taken == 1024 * MIB
    assert memory.more < 100 * MIB


async def test_a_download_of_a_gigabyte_is_passed_on_without_being_kept(ingress: Ingress) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(1024):
            await send({"type": "http.response.body", "body": BLOCK, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    await ingress.serves(app)
    taken, memory = 0, Memory()
    async with ingress.client.stream("GET", f"{ingress.url}/") as answer:
        async for chunk in answer.aiter_raw():
            taken += len(chunk)
            if taken % (64 * MIB) < len(chunk):
                memory.look()
    assert taken == 1024 * MIB
    assert memory.more < 100 * MIB


async def test_an_app_may_answer_before_it_has_read_everything(ingress: Ingress) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nno\n")
        await writer.drain()

    await ingress.serves_raw(app)
    reader, writer = await ingress.raw(
        f"POST {PREFIX}/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nbegin".encode()
    )
    async with asyncio.timeout(5):
        assert (await reader.readline()).startswith(b"HTTP/1.1 413")
    writer.close()
    await until(lambda: ingress.activator.leased == 0)


async def test_a_client_that_leaves_waits_for_a_replica_no_longer(ingress: Ingress) -> None:
    ingress.activator.ready = asyncio.Event()
    for kind in ("GET", "POST"):
        length = "Content-Length: 3\r\n" if kind == "POST" else ""
        _, writer = await ingress.raw(f"{kind} {PREFIX}/ HTTP/1.1\r\nHost: localhost\r\n{length}\r\n".encode())
        await until(lambda: ingress.activator.waiting == 1)
        writer.close()
        await until(lambda: ingress.activator.waiting == 0)


async def test_a_stop_of_the_server_waits_for_no_replica(ingress: Ingress) -> None:
    ingress.activator.ready = asyncio.Event()
    asking = asyncio.create_task(ingress.client.get(f"{ingress.url}/"))
    await until(lambda: ingress.activator.waiting == 1)
    ingress.server.stop()
    answer = await asking
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "being stopped" in answer.text
    assert ingress.activator.waiting == 0


async def test_a_body_that_was_sent_before_there_was_a_replica_arrives(ingress: Ingress) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, await body_of(receive))

    await ingress.serves(app)
    ingress.activator.ready = asyncio.Event()
    asking = asyncio.create_task(ingress.client.post(f"{ingress.url}/", content=BLOCK))
    await until(lambda: ingress.activator.waiting == 1)
    asyncio.get_running_loop().call_later(0.1, ingress.activator.ready.set)  # its client has been looked at by then
    assert (await asking).content == BLOCK


async def test_an_app_that_wants_no_body_is_not_sent_one(ingress: Ingress) -> None:
    seen = b""

    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"expect: 100-continue" in head
        if b"/yes" in head:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            seen = await reader.readexactly(5)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()

    await ingress.serves_raw(app)
    head = "POST {}{} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    answer = await ingress.ask(head.format(PREFIX, "/no").encode())
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer
    reader, writer = await ingress.raw(head.format(PREFIX, "/yes").encode())
    async with asyncio.timeout(5):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"hello")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()
    assert seen == b"hello"


async def test_a_stop_of_the_server_ends_streams_of_events_and_lets_the_rest_finish(ingress: Ingress) -> None:
    go_on = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        kind = b"text/event-stream" if scope["path"] == "/events" else b"text/plain"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": b"begin", "more_body": True})
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"end"})

    await ingress.serves(app)
    async with asyncio.timeout(10), ingress.client.stream("GET", f"{ingress.url}/") as page:
        async with ingress.client.stream("GET", f"{ingress.url}/events") as events:
            parts = [aiter(page.aiter_raw()), aiter(events.aiter_raw())]
            assert [await anext(part) for part in parts] == [b"begin", b"begin"]
            ingress.server.stop()
            assert [part async for part in parts[1]] == []
            go_on.set()
            assert [part async for part in parts[0]] == [b"end"]


@pytest.mark.parametrize("when", ["before the answer", "in the middle of it", "while it sends"])
async def test_a_client_that_leaves_ends_the_request_to_the_app(ingress: Ingress, when: str) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if when == "in the middle of it":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegin")
            await writer.drain()
        began.set()
        while await reader.read(1000):
            pass
        ended.set()

    await ingress.serves_raw(app)
    kind = "POST" if when == "while it sends" else "GET"
    length = "Content-Length: 100\r\n" if kind == "POST" else ""
    _, writer = await ingress.raw(f"{kind} {PREFIX}/ HTTP/1.1\r\nHost: localhost\r\n{length}\r\n".encode())
    async with asyncio.timeout(5):
        await began.wait()
        writer.close()
        await ended.wait()
    await until(lambda: ingress.activator.leased == 0)


async def test_a_replica_that_dies_in_the_middle_does_not_look_like_the_end(ingress: Ingress) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegin\r\n")
        await writer.drain()
        writer.close()

    await ingress.serves_raw(app)
    with pytest.raises(httpx.RemoteProtocolError):
        await ingress.client.get(f"{ingress.url}/")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x-filler: %b\r\n" % (b"x" * 1000) * 2000 + b"\r\n",
    ],
    ids=["nothing", "SSH", "length", "two lengths", "length and chunks", "coding", "999", "101", "endless head"],
)
async def test_a_replica_that_does_not_answer_properly_is_a_bad_gateway(ingress: Ingress, answer: bytes) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    await ingress.serves_raw(app)
    found = await ingress.client.get(f"{ingress.url}/")
    assert found.status_code == 502
    assert str(ingress.activator.port) not in found.text


async def test_an_answer_that_ends_with_its_connection_is_whole(ingress: Ingress) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it")
        await writer.drain()
        writer.close()

    await ingress.serves_raw(app)
    assert (await ingress.client.get(f"{ingress.url}/")).content == b"all of it"


async def test_an_app_that_takes_too_long_is_a_gateway_timeout(ingress: Ingress) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    await ingress.serves(app)
    ingress.activator.request_timeout = 0.1
    for call in (ingress.client.get(f"{ingress.url}/"), ingress.client.post(f"{ingress.url}/", content=b"x")):
        answer = await call
        assert (answer.status_code, "0.1 s" in answer.text) == (504, True)


async def test_connections_are_kept_and_one_that_was_closed_meanwhile_is_replaced(ingress: Ingress) -> None:
    connections = 0

    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            await writer.drain()
        await reader.readuntil(b"\r\n\r\n")  # a third request comes, and is not worked on
        writer.close()

    await ingress.serves_raw(app)
    for _ in range(5):
        assert (await ingress.client.get(f"{ingress.url}/")).content == b"ok"
    assert connections == 3


async def test_what_a_replica_sends_unasked_is_no_ones_answer(ingress: Ingress) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong")
            await writer.drain()

    await ingress.serves_raw(app)
    for _ in range(3):
        assert (await ingress.client.get(f"{ingress.url}/")).content == b"ok"


async def test_trailers_end_here(ingress: Ingress) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n"
        )

    await ingress.serves_raw(app)
    answer = await ingress.ask(f"GET {PREFIX}/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert answer.endswith(b"\r\n\r\n2\r\nok\r\n0\r\n\r\n")
    assert b"x-sum" not in answer


async def test_idle_connections_are_closed_although_the_app_keeps_them(ingress: Ingress) -> None:
    ended = asyncio.Event()

    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        with contextlib.suppress(ConnectionError):
            await reader.read()
        ended.set()

    ingress.pool.idle_seconds = 0.05
    await ingress.serves_raw(app)
    assert (await ingress.client.get(f"{ingress.url}/")).content == b"ok"
    async with asyncio.timeout(5):
        await ended.wait()
    assert ingress.pool.kept == 0


async def test_a_request_that_may_have_been_worked_on_is_not_repeated(ingress: Ingress) -> None:
    requests = 0

    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await reader.readuntil(b"\r\n\r\n")
        requests += 1
        writer.close()

    await ingress.serves_raw(app)
    await ingress.client.get(f"{ingress.url}/")
    assert (await ingress.client.post(f"{ingress.url}/", content=b"x")).status_code == 502
    assert requests == 1


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST %b/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST %b/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST %b/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST %b/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
        b"POST %b/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"POST %b/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    ],
)
async def test_a_request_of_two_minds_about_its_length_reaches_no_app_whole(
    ingress: Ingress, request_bytes: bytes
) -> None:
    whole = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal whole
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            if not message.get("more_body"):
                break
        whole += 1
        await reply(send, b"")

    await ingress.serves(app)
    reader, writer = await ingress.raw(request_bytes % PREFIX.encode())
    async with asyncio.timeout(5):
        assert b"200 OK" not in await reader.read(1000)
    writer.close()
    assert whole == 0


async def test_a_request_cannot_hide_its_own_length_from_the_app(ingress: Ingress) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, scope["path"].encode() + b" " + await body_of(receive))

    await ingress.serves(app)
    hidden = f"GET {PREFIX}/hidden HTTP/1.1\r\n\r\n"
    answer = await ingress.ask(
        f"POST {PREFIX}/ HTTP/1.1\r\nHost: localhost\r\nConnection: close, Content-Length, Host\r\n"
        f"Content-Length: {len(hidden)}\r\n\r\n{hidden}".encode()
    )
    assert answer.endswith(b"\r\n\r\n/ " + hidden.encode())


@pytest.mark.parametrize("path", [PREFIX, "/healthz"])
async def test_an_endless_head_is_refused(ingress: Ingress, path: str) -> None:
    reader, writer = await ingress.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode())

    async def send() -> None:
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b"x-filler: " + b"x" * 10_000 + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0)

    sending = asyncio.create_task(send())
    async with asyncio.timeout(10):
        assert (await reader.readline()).startswith(b"HTTP/1.1 431")
        writer.close()
        await sending
