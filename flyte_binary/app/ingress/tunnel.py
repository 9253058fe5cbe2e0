"""The client's side of an upgraded connection.

uvicorn hands over the connection of an upgrade request to the class that it is given as `ws`. This one shows the
request to the application as an ASGI scope of type `websocket`, with itself in the scope. The ingress then has it
joined to a replica; nothing is parsed any more, so each subprotocol and extension works. Whoever refuses the request
does so with the messages of an ordinary answer, after which the connection is closed.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Scope
from uvicorn.config import Config
from uvicorn.server import ServerState

from flyte_binary.app.ingress.headers import Header
from flyte_binary.app.ingress.peer import Peer

_EXTENSION = "flyte.tunnel"
_EARLY_BYTES = 64 * 1024
"""Kept of what a client sends before it has an answer; it has no business to."""


_RESET = struct.pack("ii", 1, 0)
"""Close with a reset: the end of the connection is the end of an answer without a length."""


def tunnel_of(scope: Scope) -> Tunnel:
    """Of a scope of type `websocket`."""
    return cast("Tunnel", scope["extensions"][_EXTENSION])


class Tunnel(asyncio.Protocol):
    """Made by uvicorn."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # Any: whatever the application keeps there
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._config = config
        self._state = server_state
        self._app_state = app_state
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        """Looked at by the server when it stops."""

        self.when_gone: Callable[[], None] | None = None
        """Called if the client leaves before it is joined with a replica."""

        self._peer: Peer | None = None
        self._early = b""
        self._begun = False
        self.answered = False
        """At least the head of an answer has been sent."""

        self._writable: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] = self._loop.create_future()

    async def join(self, replica: asyncio.Transport, head: bytes, first: bytes) -> None:
        """Answer with `head`; then what either side sends goes to the other, `first` of the replica to begin with,
        until one of them ends."""
        self.answered = True
        self._peer = peer = Peer(self, replica)
        peer.resume()
        self.resume()
        self.write(head + first)
        peer.write(self._early)
        try:
            await self._ended
        finally:
            peer.close()
            self._close()

    # Called by the replica's side

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def pause(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def end(self) -> None:
        self._close()
        if not self._ended.done():
            self._ended.set_result(None)

    # asyncio.Protocol, and what uvicorn calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._state.connections.add(self)  # pyright: ignore[reportArgumentType]  # one of its own protocols, to uvicorn

    def data_received(self, data: bytes) -> None:
        if self._peer is not None:
            self._peer.write(data)
        elif not self._begun:
            self._begun = True
            self._begin(data)
        else:
            self._early += data
            if len(self._early) > _EARLY_BYTES:
                self.pause()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # a protocol's argument
        self._state.connections.discard(self)  # pyright: ignore[reportArgumentType]  # as above
        self.resume_writing()
        self.end()
        if self._peer is None and self.when_gone is not None:
            self.when_gone()

    def pause_writing(self) -> None:
        if self._peer is not None:
            self._peer.pause()
        else:
            self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._peer is not None:
            self._peer.resume()
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def cut(self) -> None:
        """So that an answer that is not complete does not look whole."""
        if self.transport is not None:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()

    def shutdown(self) -> None:
        """The server stops: apps go on, but not through it."""
        self.end()

    # The request, and an answer that is a refusal

    def _begin(self, head: bytes) -> None:
        task = self._loop.create_task(self._serve(self._scope(head)), name="upgraded connection")
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    async def _serve(self, scope: Scope) -> None:
        try:
            application = cast("ASGIApp", self._config.app)
            await application(scope, self._receive, self._send)
        finally:
            self._close()

    def _scope(self, head: bytes) -> Scope:
        """Of the head as uvicorn has read it, and written it down again."""
        first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        method, url, _ = first.split(b" ", 2)
        path, _, query = url.partition(b"?")
        headers = [(name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines)]
        client, server = (self.transport and self.transport.get_extra_info(side) for side in ("peername", "sockname"))
        return {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method.decode("ascii"),
            "scheme": "ws",
            "server": server[:2] if server else None,
            "client": client[:2] if client else None,
            "root_path": "",
            "path": unquote(path.decode("latin-1")),
            "raw_path": path,
            "query_string": query,
            "headers": headers,
            "subprotocols": [],
            "state": self._app_state.copy(),
            "extensions": {_EXTENSION: self},
        }

    async def _receive(self) -> Message:
        return {"type": "websocket.connect"}

    async def _send(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start" if not self.answered:
                self.answered = True
                self.write(_head_of(message["status"], message["headers"]))
            case "http.response.body" if self._peer is None:
                self.write(message.get("body", b""))
                if self._writable is not None:
                    await self._writable
            case "websocket.close" if not self.answered:
                self.answered = True
                self.write(_head_of(404, [(b"content-length", b"0")]))
            case _:
                return

    def _close(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()


def _head_of(status: int, headers: list[Header]) -> bytes:
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    lines = [f"HTTP/1.1 {status} {reason}".encode(), *(name + b": " + value for name, value in headers)]
    return b"\r\n".join([*lines, b"connection: close", b"", b""])
