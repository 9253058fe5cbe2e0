"""One HTTP request and its answer, over ASGI."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import Receive, Scope, Send

from flyte_binary.rpc.compression import too_large

HeaderList = list[tuple[bytes, bytes]]


def header_pairs(headers: Iterable[tuple[str, str]]) -> HeaderList:
    return [(name.lower().encode("ascii"), value.encode("latin-1")) for name, value in headers]


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


class Exchange:
    """Reads the request once and writes the answer once; headers by lower-case name."""

    __slots__ = ("_body_read", "headers", "receive", "scope", "send", "started")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.started = False
        self._body_read = False

    async def next_chunk(self) -> bytes | None:
        """The next part of the body, None at its end. Raises ClientGone."""
        if self._body_read:
            return None
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        self._body_read = not message.get("more_body", False)
        return message.get("body", b"")

    async def body(self, *, limit_bytes: int) -> bytes:
        """The whole body. Raises ResourceExhausted over the limit, ClientGone."""
        if int(self.headers.get(b"content-length", b"0")) > limit_bytes:
            raise too_large(limit_bytes)
        parts: list[bytes] = []
        total = 0
        while (chunk := await self.next_chunk()) is not None:
            total += len(chunk)
            if total > limit_bytes:
                raise too_large(limit_bytes)
            parts.append(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def wait_for_disconnect(self) -> None:
        """Return when the client is gone. Only after the body was read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def start(self, status: int, headers: HeaderList) -> None:
        self.started = True
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes, *, more: bool = True) -> None:
        await self.send({"type": "http.response.body", "body": data, "more_body": more})

    async def respond(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        await self.start(status, [*headers, (b"content-length", str(len(body)).encode())])
        await self.write(body, more=False)
