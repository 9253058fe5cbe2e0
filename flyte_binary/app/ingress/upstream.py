"""Connections to replicas: HTTP/1.1, one request at a time, kept for the next.

Bodies are neither collected nor decoded: what does not fit into a buffer of 256 KiB waits on the other side.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import cast

import httptools

from flyte_binary.app.ingress.headers import Header

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 4.0
"""Less than the 5 s after which uvicorn closes a connection that it has kept."""

MAX_IDLE = 64
"""Connections to one replica that are kept."""

_ADDRESSES = 256
_HIGH_WATER = 256 * 1024
_SWITCHING = 101
_NO_BODY = (204, 304)


class UpstreamGone(Exception):
    """The replica does not take the connection, or ended it before the answer was complete."""


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.status = 0
        self.reason = b""
        self.headers: list[Header] = []
        self.used = 0
        """Requests before this one."""

        self.idle_since = 0.0
        self.received = False
        """Anything of the answer has come."""

        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body: deque[bytes] = deque()
        self._buffered = 0
        self._paused = False
        self._news: asyncio.Future[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._head_done = self._complete = self._until_close = False
        self._without_body = self._keep_alive = False
        self._lost: Exception | None = None
        self._is_lost = False

    # The request

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing() and not self._is_lost

    def begin(self, *, without_body: bool) -> None:
        """Before each request; `without_body`: the answer has none, whatever it says (HEAD)."""
        self.status, self.headers, self.received = 0, [], False
        self._head_done = self._complete = self._until_close = False
        self._without_body = without_body

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until more may be written. Raises `UpstreamGone`."""
        await self._may_write.wait()
        if self._is_lost:
            raise UpstreamGone(str(self._lost or "the connection was closed"))

    # The answer

    async def head(self) -> None:
        """Returns when `status` and `headers` are there. Raises `UpstreamGone`."""
        while not self._head_done:
            if self._is_lost:
                raise UpstreamGone(str(self._lost or "it closed the connection without an answer"))
            await self._wait()

    @property
    def complete(self) -> bool:
        """The whole answer has come; parts of it may still be there to be taken."""
        return self._complete

    def take(self) -> bytes:
        """What has come of the body."""
        data = self._body.popleft() if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        self._buffered = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def body(self) -> bytes:
        """The next part of the body, empty at its end. Raises `UpstreamGone`."""
        while not self._body and not self._complete:
            if self._is_lost:
                raise UpstreamGone(str(self._lost or "it closed the connection in the middle of an answer"))
            await self._wait()
        return self.take() if self._body else b""

    @property
    def reusable(self) -> bool:
        return self._complete and not self._until_close and not self._without_body and self._keep_alive and self.usable

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        self._news = self._loop.create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._lost, self._is_lost = UpstreamGone(f"it does not speak HTTP/1.1: {error}"), True
            self.close()
        self._tell()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost, self._lost = True, self._lost or exc
        if self._head_done and self._until_close and exc is None:
            self._complete = True
        self._may_write.set()
        self._tell()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    # httptools

    def on_message_begin(self) -> None:
        self.headers, self.reason = [], b""

    def on_status(self, status: bytes) -> None:
        self.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != _SWITCHING:
            return
        self.status, self._head_done = status, True
        self._keep_alive = self._parser.should_keep_alive()
        names = {name for name, _ in self.headers}
        bounded = b"content-length" in names or b"transfer-encoding" in names
        self._until_close = not bounded and status not in _NO_BODY
        if self._without_body:
            self._complete = True

    def on_body(self, body: bytes) -> None:
        if self._without_body:
            return
        self._body.append(body)
        self._buffered += len(body)
        if self._buffered > _HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._head_done:
            self._complete = True


class Pool:
    """Kept connections, by address. Used on one event loop."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], deque[Connection]] = {}

    async def get(self, host: str, port: int, *, fresh: bool = False) -> Connection:
        """A connection without a request. Raises `UpstreamGone`."""
        idle = self._idle.get((host, port))
        oldest = time.monotonic() - IDLE_SECONDS
        while idle and not fresh:
            connection = idle.pop()
            if connection.usable and connection.idle_since > oldest:
                return connection
            connection.close()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await asyncio.get_running_loop().create_connection(Connection, host, port)
        except (OSError, TimeoutError) as error:
            raise UpstreamGone(f"it takes no connection: {error}") from error
        return connection

    def give_back(self, host: str, port: int, connection: Connection) -> None:
        if (host, port) not in self._idle and len(self._idle) >= _ADDRESSES:
            self._forget_unused()
        idle = self._idle.setdefault((host, port), deque())
        if not connection.reusable or len(idle) >= MAX_IDLE:
            connection.close()
            return
        connection.used += 1
        connection.idle_since = time.monotonic()
        idle.append(connection)

    def _forget_unused(self) -> None:
        """Replicas come and go, each with an address of its own."""
        oldest = time.monotonic() - IDLE_SECONDS
        for address, idle in list(self._idle.items()):
            if not idle or idle[-1].idle_since < oldest:
                self._close(address)

    def _close(self, address: tuple[str, int]) -> None:
        for connection in self._idle.pop(address, ()):
            connection.close()

    def close_all(self) -> None:
        for address in list(self._idle):
            self._close(address)
