"""Answers of replicas, however the network cuts them, and what is none."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.app.ingress.upstream import HEAD_LIMIT_BYTES, Connection, UpstreamGone


class Wire(asyncio.Transport):
    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.reading = True
        self.closing = False
        self._connection = connection

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def abort(self) -> None:
        if not self.closing:
            self.closing = True
            self._connection.connection_lost(None)

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


def connected(*, without_body: bool = False, switch: bool = False) -> tuple[Connection, Wire]:
    connection = Connection()
    wire = Wire(connection)
    connection.connection_made(wire)
    connection.begin(without_body=without_body, switch=switch)
    return connection, wire


async def all_of(connection: Connection) -> bytes:
    parts: list[bytes] = []
    while not connection.complete or not parts:
        parts.append(await connection.body())
        if not parts[-1]:
            break
    return b"".join(parts)


ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nX-B: 2\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello",
]


@given(answer=st.sampled_from(ANSWERS), cuts=st.sets(st.integers(1, 80), max_size=8))
def test_an_answer_is_the_same_however_it_is_cut(answer: bytes, cuts: set[int]) -> None:
    async def read() -> None:
        connection, _ = connected()
        edges = [0, *sorted(cut for cut in cuts if cut < len(answer)), len(answer)]
        for begin, end in pairwise(edges):
            connection.data_received(answer[begin:end])
        await connection.head()
        headers = {name: value for name, value in connection.headers if name.startswith((b"x-", b"l"))}
        assert (connection.status, headers) == (200, {b"x-a": b"1"})
        assert await all_of(connection) == b"hello"
        assert connection.reusable

    asyncio.run(read())


@given(data=st.binary(max_size=200), begun=st.booleans())
def test_whatever_comes_is_an_answer_or_the_end_of_the_connection(data: bytes, begun: bool) -> None:
    async def read() -> None:
        connection, wire = connected()
        connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" * begun + data)
        wire.abort()
        try:
            await connection.head()
            await all_of(connection)
        except UpstreamGone:
            return
        assert connection.complete

    asyncio.run(read())


async def test_what_is_not_taken_is_not_read() -> None:
    connection, wire = connected()
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    for _ in range(3):
        connection.data_received(b"x" * 100_000)
    assert not wire.reading
    assert len(await connection.body()) == 300_000
    assert wire.reading


async def test_a_head_has_a_limit_and_a_body_has_none() -> None:
    connection, wire = connected()
    connection.data_received(b"HTTP/1.1 200 OK\r\n")
    for _ in range(HEAD_LIMIT_BYTES // 1000 + 1):
        connection.data_received(b"x-a: %b\r\n" % (b"x" * 1000))
    assert wire.closing
    with pytest.raises(UpstreamGone, match="too large"):
        await connection.head()


@pytest.mark.parametrize(
    ("answer", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n", False),
    ],
)
async def test_only_what_has_come_to_its_end_is_used_again(answer: bytes, reusable: bool) -> None:
    connection, _ = connected()
    connection.data_received(answer)
    await connection.head()
    assert connection.reusable is reusable


async def test_an_answer_to_head_has_no_body_whatever_it_says() -> None:
    connection, _ = connected(without_body=True)
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
    await connection.head()
    assert (connection.complete, await connection.body(), connection.reusable) == (True, b"", False)


async def test_what_comes_between_two_requests_ends_the_connection() -> None:
    connection, wire = connected()
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    connection.rest(0.0)
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert wire.closing
    assert not connection.usable


async def test_a_changed_protocol_begins_after_the_head_and_is_not_read_yet() -> None:
    connection, wire = connected(switch=True)
    connection.data_received(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello")
    await connection.head()
    assert connection.switched
    assert connection.detach() == (wire, b"hello")
    assert not wire.reading


async def test_the_end_of_the_connection_is_the_end_of_an_answer_without_a_length_only() -> None:
    for head, whole in ((b"", True), (b"Content-Length: 9\r\n", False), (b"Transfer-Encoding: chunked\r\n", False)):
        connection, _ = connected()
        connection.data_received(
            b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + (b"5\r\nhello" if b"chunk" in head else b"hello")
        )
        connection.connection_lost(None)
        assert await connection.body() == b"hello"
        if whole:
            assert await connection.body() == b""
        else:
            with pytest.raises(UpstreamGone):
                await connection.body()
