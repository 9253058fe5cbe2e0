"""A Connect client that costs little: binary protobuf over kept-alive HTTP/1.1, one call at a time a connection.

It must not be the bottleneck, so it knows only what this server sends: `content-length` on unary answers, chunks on
streams. The SDK's own client would use as much of a core as the server does.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import Message

M = TypeVar("M", bound=Message)

_LENGTH = b"content-length:"


class CallFailed(Exception):
    """An answer other than 200."""


class Connection(asyncio.Protocol):
    """Unary calls; a second one waits for nobody, so make one connection a worker."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._buffer = bytearray()
        self._waiter: asyncio.Future[tuple[bytes, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    async def open(self) -> Connection:
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)
        return self

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def call(self, method: str, request: Message, response: type[M]) -> M:
        """`method` is the full name, `flyteidl2.workflow.RunService/CreateRun`. Raises `CallFailed`."""
        answer = response()
        answer.ParseFromString(await self.send(method, request.SerializeToString()))
        return answer

    async def send(self, method: str, body: bytes) -> bytes:
        """Raises `CallFailed`, `ConnectionError`."""
        assert self._transport is not None
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(head(method, self._port, "application/proto", len(body)) + body)
        status, answer = await self._waiter
        if status != b"200":
            raise CallFailed(f"{method}: {status.decode()} {answer.decode(errors='replace')}")
        return answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        headers = bytes(self._buffer[:end]).lower()
        length = int(headers.partition(_LENGTH)[2].split(b"\r\n", 1)[0])
        total = end + 4 + length
        if len(self._buffer) < total:
            return
        status, body = headers[9:12], bytes(self._buffer[end + 4 : total])
        del self._buffer[:total]
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result((status, body))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(exc or ConnectionError("the server closed the connection"))


class Stream(asyncio.Protocol):
    """A server stream. Each message goes, as bytes, to `on_message` with the time (`perf_counter`) of its arrival."""

    def __init__(self, port: int, on_message: Callable[[float, bytes], None]) -> None:
        self._port = port
        self._on_message = on_message
        self._raw = bytearray()
        self._enveloped = bytearray()
        self._head_read = False
        self._transport: asyncio.Transport | None = None
        self.end: bytes | None = None
        """What the server said at the end, `{}` for a clean one; None if it only closed the connection."""
        self.closed = asyncio.Event()

    async def open(self, method: str, request: Message) -> Stream:
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)
        assert self._transport is not None
        body = request.SerializeToString()
        body = struct.pack(">BI", 0, len(body)) + body
        self._transport.write(head(method, self._port, "application/connect+proto", len(body)) + body)
        return self

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self._raw += data
        if not self._head_read and not self._read_head():
            return
        self._read_chunks()
        self._read_envelopes(now)

    def connection_lost(self, _exc: Exception | None) -> None:
        self.closed.set()

    def _read_head(self) -> bool:
        end = self._raw.find(b"\r\n\r\n")
        if end < 0:
            return False
        if self._raw[9:12] != b"200":
            raise CallFailed(bytes(self._raw).decode(errors="replace"))
        del self._raw[: end + 4]
        self._head_read = True
        return True

    def _read_chunks(self) -> None:
        raw = self._raw
        while (end := raw.find(b"\r\n")) >= 0:
            size = int(raw[:end], 16)
            if len(raw) < end + 4 + size:
                return
            self._enveloped += raw[end + 2 : end + 2 + size]
            del raw[: end + 4 + size]

    def _read_envelopes(self, now: float) -> None:
        data = self._enveloped
        while len(data) >= 5:
            flags, size = struct.unpack_from(">BI", data)
            if len(data) < 5 + size:
                return
            payload = bytes(data[5 : 5 + size])
            del data[: 5 + size]
            if flags & 2:
                self.end = payload
            else:
                self._on_message(now, payload)


def head(method: str, port: int, content_type: str, length: int) -> bytes:
    return (
        f"POST /{method} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {content_type}\r\n"
        f"Connect-Protocol-Version: 1\r\nContent-Length: {length}\r\n\r\n"
    ).encode()
