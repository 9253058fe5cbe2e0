"""WebSockets: once the request is for an app, the connection is the app's, byte by byte.

uvicorn hands over the connection of an upgrade request to the class that it is given as `ws`. This one shows the
request to the application as an ASGI scope of type `websocket`, with itself in the scope. The ingress then has it
joined to a replica; nothing is parsed any more, so each subprotocol and extension works. Whoever refuses the request
does so with the messages of an ordinary answer.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Scope
from uvicorn.config import Config
from uvicorn.server import ServerState

from flyte_binary.app.ingress.upstream import CONNECT_SECONDS, UpstreamGone

_EXTENSION = "flyte.tunnel"
_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


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

        self._peer: _Peer | None = None
        self._ended = self._loop.create_future()
        self._answered = False

    async def run(self, host: str, port: int, head: bytes) -> None:
        """Join the client with that replica, which gets `head` first, until either side ends. Raises `UpstreamGone`
        while nothing has come back."""
        assert self.transport is not None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, peer = await self._loop.create_connection(lambda: _Peer(self), host, port)
        except (OSError, TimeoutError) as error:
            raise UpstreamGone(f"it takes no connection: {error}") from error
        self._peer, self._answered = peer, True
        peer.write(head)
        self.transport.resume_reading()
        try:
            await self._ended
        finally:
            peer.close()
            self._close()

    # Called by the replica's side

    def answer(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def end(self) -> None:
        self._close()
        if not self._ended.done():
            self._ended.set_result(None)

    def pause(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    # asyncio.Protocol, and what uvicorn calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._state.connections.add(self)  # pyright: ignore[reportArgumentType]  # one of its own protocols, to uvicorn

    def data_received(self, data: bytes) -> None:
        if self._peer is not None:
            self._peer.write(data)
        elif self.transport is not None:
            self.transport.pause_reading()  # nothing more is due before the answer
            self._begin(data)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # a protocol's argument
        self._state.connections.discard(self)  # pyright: ignore[reportArgumentType]  # as above
        self.end()

    def pause_writing(self) -> None:
        if self._peer is not None:
            self._peer.pause()

    def resume_writing(self) -> None:
        if self._peer is not None:
            self._peer.resume()

    def shutdown(self) -> None:
        """The server stops: apps go on, but not through it."""
        self.end()

    def _begin(self, head: bytes) -> None:
        try:
            scope = self._scope(head)
        except ValueError:
            self.answer(_BAD_REQUEST)
            self._close()
            return
        task = self._loop.create_task(self._serve(scope), name="upgraded connection")
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    async def _serve(self, scope: Scope) -> None:
        try:
            application = cast("ASGIApp", self._config.app)
            await application(scope, self._receive, self._send)
        finally:
            self._close()

    def _scope(self, head: bytes) -> Scope:
        """Of the head as uvicorn has read it. Raises ValueError."""
        first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        method, url, _ = first.split(b" ", 2)
        if method != b"GET" or self.transport is None:
            raise ValueError
        path, _, query = url.partition(b"?")
        headers = [(name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines)]
        client = self.transport.get_extra_info("peername")
        server = self.transport.get_extra_info("sockname")
        return {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
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
        """A refusal."""
        if self._answered and message["type"] != "http.response.body":
            return
        match message["type"]:
            case "http.response.start":
                self._answered = True
                self.answer(_head_of(message["status"], message["headers"]))
            case "http.response.body":
                self.answer(message.get("body", b""))
            case "websocket.close":
                self._answered = True
                self.answer(_head_of(404, [(b"content-length", b"0")]))
            case _:
                return

    def _close(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()


class _Peer(asyncio.Protocol):
    """The replica's side."""

    def __init__(self, tunnel: Tunnel) -> None:
        self._tunnel = tunnel
        self._transport: asyncio.Transport | None = None

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._tunnel.answer(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # a protocol's argument
        self._tunnel.end()

    def pause_writing(self) -> None:
        self._tunnel.pause()

    def resume_writing(self) -> None:
        self._tunnel.resume()


def _head_of(status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    lines = [f"HTTP/1.1 {status} {reason}".encode(), *(name + b": " + value for name, value in headers)]
    return b"\r\n".join([*lines, b"connection: close", b"", b""])
