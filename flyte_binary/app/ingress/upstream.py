"""A connection to a replica: HTTP/1.1, one request at a time, kept for the next.

Bodies are neither collected nor decoded: what does not fit into a buffer of 256 KiB waits on the other side.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast

import httptools

from flyte_binary.app.ingress.headers import Header, body_kind

HEAD_LIMIT_BYTES = 64 * 1024
"""Of an answer; the same as for requests, `rpc/http_protocol.py`."""

_HIGH_WATER = 256 * 1024
_CONTINUE, _SWITCHING = 100, 101
_NO_BODY = (204, 304)
_UNFOUNDED = "it sent what nobody has asked for"


class UpstreamGone(Exception):
    """The replica does not take the connection, or ended it before the answer was complete, or does not speak
    HTTP/1.1; the message is for the log."""


class Connection(asyncio.Protocol):
    """begin() -> write() ... -> head() -> body() until empty; then again, if it is reusable."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[Header] = []
        self.used = 0
        """Requests before this one."""

        self.idle_since = 0.0
        self.received = False
        """Anything of the answer has come."""

        self.continued = asyncio.Event()
        """The replica wants the request's body, or there will be no answer to whether it does."""

        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body: deque[bytes] = deque()
        self._buffered = self._head_bytes = 0
        self._rest = b""
        self._news: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._busy = self._paused = False
        self._head_done = self._complete = False
        self._until_close = self._without_body = self._keep_alive = False
        self._switched = self._expects_switch = False
        self._broken = ""
        """Why there is nothing more to come of it."""

    # The request

    @property
    def usable(self) -> bool:
        return not self._broken and self._transport is not None and not self._transport.is_closing()

    def begin(self, *, without_body: bool = False, switch: bool = False) -> None:
        """Before each request. `without_body`: the answer has none, whatever it says (HEAD); `switch`: the answer may
        be 101."""
        self.status, self.headers, self.received, self._head_bytes = 0, [], False, 0
        self._head_done = self._complete = self._until_close = False
        self.continued.clear()
        self._without_body, self._expects_switch = without_body, switch
        self._busy = True

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until more may be written. Raises `UpstreamGone`."""
        if self._writable is not None:
            await self._writable
        if self._broken:
            raise UpstreamGone(self._broken)

    # The answer

    async def head(self) -> None:
        """Returns when `status` and `headers` are there. Raises `UpstreamGone`."""
        while not self._head_done:
            await self._wait()

    async def body(self) -> bytes:
        """The next part of the body, empty at its end. Raises `UpstreamGone`."""
        while not self._body and not self._complete:
            await self._wait()
        return self._take() if self._body else b""

    @property
    def complete(self) -> bool:
        """The whole answer has come; parts of it may still be there to be taken."""
        return self._complete

    @property
    def switched(self) -> bool:
        """The answer is 101: what comes now is of another protocol."""
        return self._switched

    def detach(self) -> tuple[asyncio.Transport, bytes]:
        """After `switched`: the transport, which reads nothing, and what it has read already."""
        assert self._transport is not None
        return self._transport, self._rest

    @property
    def reusable(self) -> bool:
        return self._complete and self._keep_alive and not self._until_close and not self._without_body and self.usable

    def rest(self, now: float) -> None:
        """Until the next request; whatever comes before it ends the connection."""
        self.used += 1
        self.idle_since = now
        self._busy = False

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _take(self) -> bytes:
        data = self._body.popleft() if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        self._buffered = 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def _wait(self) -> None:
        """For anything to come."""
        if self._broken:
            raise UpstreamGone(self._broken)
        self._news = self._loop.create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _break(self, why: str) -> None:
        self._broken = self._broken or why
        self.continued.set()
        self.close()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._busy:
            self._break(_UNFOUNDED)
            return
        self.received = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._switch(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._break(f"it does not speak HTTP/1.1: {error}")
        if not self._head_done:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT_BYTES:
                self._break("the head of its answer is too large")
        self._tell()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._head_done and self._until_close and exc is None and not self._broken:
            self._complete = True
        self._broken = self._broken or (str(exc) if exc else "it closed the connection")
        self.continued.set()
        self.resume_writing()
        self._tell()

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def _switch(self, rest: bytes) -> None:
        if not self._expects_switch or self._transport is None:
            self._break("it changes the protocol without having been asked")
            return
        self._switched, self._rest = True, rest
        self._transport.pause_reading()

    # httptools

    def on_message_begin(self) -> None:
        if self._complete:
            self._break(_UNFOUNDED)
        elif not self._head_done:
            self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_done:  # else a trailer, which ends here
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._complete:
            return
        if status < 200 and status != _SWITCHING:
            if status == _CONTINUE:
                self.continued.set()
            return
        kind = body_kind(self.headers)
        if status >= 600 or kind == "coded" or (status == _SWITCHING and not self._expects_switch):
            self._break(f"its answer cannot be passed on: status {status}, {kind or 'no'} body")
            return
        self.status, self._head_done = status, True
        self.continued.set()
        self._keep_alive = self._parser.should_keep_alive()
        bounded = kind or any(name == b"content-length" for name, _ in self.headers)
        self._until_close = not bounded and status not in _NO_BODY
        self._complete = self._without_body

    def on_body(self, body: bytes) -> None:
        if self._complete:
            return
        self._body.append(body)
        self._buffered += len(body)
        if self._buffered > _HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._head_done:
            self._complete = True
