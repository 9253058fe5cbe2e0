"""The HTTP server: one origin for RPC, signed URLs, the console, health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import structlog
import uvicorn
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from flyte_binary.rpc.application import RpcApplication
from flyte_binary.rpc.boundary import Boundary
from flyte_binary.rpc.disconnect import Drain, alongside
from flyte_binary.rpc.health import ReadinessCheck, health_routes
from flyte_binary.rpc.hosts import HostCheck
from flyte_binary.rpc.http_protocol import HttpProtocol
from flyte_binary.rpc.origins import OriginCheck

_log = structlog.get_logger(__name__)
_KEEP_ALIVE_SECONDS = 120
"""Longer than the 90 s for which the SDK keeps an idle connection: the client closes it, so that it never sends a
request into a connection that the server is closing."""

_BACKLOG = 2048
_FLUSH_SECONDS = 0.25
"""How long a stop waits for a client that does not read the end of its answer."""


class AddressInUse(Exception):
    """The address to listen on cannot be had; the message says why and what to do."""


def build_app(
    rpc: RpcApplication,
    *,
    drain: Drain,
    routes: Sequence[BaseRoute] = (),
    readiness: Sequence[ReadinessCheck] = (),
    registry: CollectorRegistry | None = None,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
    ingress: Middleware | None = None,
) -> Starlette:
    """`routes` are what is served besides RPC, health and metrics; the first match wins. `allowed_hosts` come in
    addition to loopback names and IP addresses, `allowed_origins` to the server's own. `ingress` takes what is for
    apps."""
    return Starlette(
        routes=[*health_routes(readiness, drain=drain, registry=registry or CollectorRegistry()), *routes],
        middleware=[
            Middleware(Boundary),
            Middleware(HostCheck, allowed=allowed_hosts),
            *([] if ingress is None else [ingress]),
            Middleware(OriginCheck, allowed=allowed_origins),
            Middleware(_RpcFirst, rpc=rpc),
        ],
    )


class _RpcFirst:
    """Calls of RPC go straight to their application, past the routes: this is the hot path."""

    def __init__(self, app: ASGIApp, rpc: RpcApplication) -> None:
        self._app = app
        self._rpc = rpc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._rpc.serves(scope["path"]):
            await self._rpc(scope, receive, send)
        else:
            await self._app(scope, receive, send)


@dataclass(kw_only=True)
class Server:
    """Listens and serves until `stop` is called; signals are the caller's business.

    server = Server(app=app, drain=drain, host="127.0.0.1", port=30080)
    port = server.bind()
    await server.serve()             # returns when stop() has been called and all is closed
    """

    app: ASGIApp
    drain: Drain
    host: str = "127.0.0.1"
    port: int = 30080
    """0 takes a free one; `bind` says which."""

    upgrades: type[asyncio.Protocol] | None = None
    """What becomes of connections that are to change to WebSocket or another protocol; None takes their requests for
    ordinary ones."""

    shutdown_timeout: timedelta = timedelta(seconds=10)
    """How long a stop waits for calls in progress before it cuts them."""

    _socket: socket.socket | None = field(default=None, init=False)
    _others: list[socket.socket] = field(default_factory=list[socket.socket], init=False)
    _uvicorn: uvicorn.Server | None = field(default=None, init=False)
    _started: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def bind(self) -> int:
        """Take the address, so that nothing else of the start is done in vain; the port. Raises AddressInUse."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        # With the protocol named: asyncio sets TCP_NODELAY only on such sockets, and without it every answer that is
        # written in two pieces waits 40 ms for the acknowledgement of the first.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.host, self.port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise AddressInUse(_why(self.host, self.port, error)) from error
        listener.setblocking(False)
        self._socket = listener
        self.port = listener.getsockname()[1]
        return self.port

    def also_listen(self, listener: socket.socket) -> None:
        """On an address that others have too; before `serve`."""
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        self._others.append(listener)

    async def serve(self) -> None:
        """Returns after `stop`, when the connections are closed. Raises AddressInUse if `bind` was not called before
        and the address is taken."""
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        self._uvicorn = _Uvicorn(self._config(), self._started)
        try:
            await self._uvicorn.serve(sockets=[self._socket, *self._others])
        finally:
            for listener in (self._socket, *self._others):
                listener.close()

    async def until_started(self) -> None:
        """Returns as soon as connections are accepted."""
        await self._started.wait()

    def stop(self) -> None:
        """End the open streams, let the other calls finish, close the connections; `serve` returns then. A second call
        cuts what still runs."""
        if self._uvicorn is None:
            return
        if self._uvicorn.should_exit:
            self._uvicorn.force_exit = True
        self.drain.begin()
        self._uvicorn.should_exit = True

    def _config(self) -> uvicorn.Config:
        return uvicorn.Config(
            self.app,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=HttpProtocol,
            ws="none" if self.upgrades is None else self.upgrades,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, round(self.shutdown_timeout.total_seconds())),
            backlog=_BACKLOG,
        )


class _Uvicorn(uvicorn.Server):
    """Leaves the signals alone; `lifecycle.py` decides what they mean."""

    def __init__(self, config: uvicorn.Config, started: asyncio.Event) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._started.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        async with alongside(self._abort_stuck(), name="abort stuck connections"):
            await super().shutdown(sockets=sockets)

    async def _abort_stuck(self) -> None:
        """A connection that closes waits for its client to read what is under way; one that does not read would hold
        the stop up."""
        while True:
            closing = [c.transport for c in self.server_state.connections if c.transport.is_closing()]
            await asyncio.sleep(_FLUSH_SECONDS)
            for transport in closing:
                transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _why(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"{host}:{port} is already in use, maybe by another flyte-binary. Stop it, or choose another port"
                " (--port, runs.server.port)."
            )
        case errno.EACCES:
            return f"{host}:{port} may not be used by this user; choose a port above 1023 (runs.server.port)."
        case _:
            return f"Cannot listen on {host}:{port}: {error.strerror or error} (runs.server.host, runs.server.port)."
