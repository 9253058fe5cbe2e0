"""What uvicorn leaves open: heads without end, answers in two packets, answers that break off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from flyte_binary.rpc.http_protocol import HEAD_LIMIT_BYTES, HttpProtocol, cut


class Wire(asyncio.Transport):
    """Keeps what is written, write by write."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.written: list[bytes] = []
        self.closed = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closed.set()

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


def connected(app: Any) -> tuple[HttpProtocol, Wire]:
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", date_header=False, server_header=False)
    protocol, wire = HttpProtocol(config, ServerState(), {}), Wire()
    protocol.connection_made(wire)
    return protocol, wire


REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def finished(protocol: HttpProtocol) -> None:
    async with asyncio.timeout(5):
        await asyncio.gather(*protocol.tasks)


async def test_an_answer_that_is_ready_is_one_write() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    protocol, wire = connected(app)
    for _ in range(2):
        protocol.data_received(REQUEST)
        await finished(protocol)
    assert wire.written == [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"] * 2


async def test_a_head_does_not_wait_for_a_body_that_takes_its_time() -> None:
    go_on = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await go_on.wait()
        for part in (b"a", b"b"):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    protocol, wire = connected(app)
    protocol.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
    await asyncio.sleep(0)
    protocol.data_received(b"x")
    for _ in range(5):
        await asyncio.sleep(0)
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    assert wire.written == [b"HTTP/1.1 100 Continue\r\n\r\n", head]
    go_on.set()
    await finished(protocol)
    assert wire.written[2:] == [b"1\r\na\r\n", b"1\r\nb\r\n", b"0\r\n\r\n"]


async def test_an_answer_that_is_cut_keeps_what_was_sent_and_has_no_end() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await cut(scope, receive)

    protocol, wire = connected(app)
    protocol.data_received(REQUEST)
    await wire.closed.wait()
    protocol.connection_lost(None)
    await finished(protocol)
    assert wire.written == [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]


async def test_another_servers_answer_cannot_be_cut_and_nothing_happens() -> None:
    async def receive() -> Any:
        raise AssertionError("nobody is asked")

    await cut({"type": "http"}, receive)


@pytest.mark.parametrize("filler", [b"x" * 1000 + b"\r\nx: ", b"x" * 1000], ids=["many headers", "one header"])
async def test_a_head_without_end_is_refused(filler: bytes) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("served")

    protocol, wire = connected(app)
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\nx: ")
    sent = 0
    while not wire.is_closing():
        protocol.data_received(filler)
        sent += len(filler)
        assert sent < HEAD_LIMIT_BYTES + 2 * len(filler)
    assert wire.written[0].startswith(b"HTTP/1.1 431 ")
    head, _, body = wire.written[0].partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head


async def test_a_large_body_and_a_long_connection_do_not_count_as_heads() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            continue
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    protocol, wire = connected(app)
    for _ in range(3):
        protocol.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n")
        for _ in range(3):
            protocol.data_received(b"x" * 100_000)
        await finished(protocol)
    assert [data.split(b"\r\n")[0] for data in wire.written] == [b"HTTP/1.1 204 No Content"] * 3
    protocol.connection_lost(None)
