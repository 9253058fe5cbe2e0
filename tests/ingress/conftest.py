"""The server with its ingress on a real port, in front of apps that are real servers on ports of their own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest
import uvicorn
from starlette.middleware import Middleware

from flyte_binary.app.ingress.ingress import AppIngress
from flyte_binary.app.ingress.pool import Pool
from flyte_binary.app.ingress.ports import NoSuchApp, Upstream
from flyte_binary.app.ingress.tunnel import Tunnel
from flyte_binary.console.routes import console_folder, console_routes
from flyte_binary.domain.ids import AppId
from flyte_binary.rpc.application import RpcApplication
from flyte_binary.rpc.calls import CallSettings
from flyte_binary.rpc.disconnect import Drain
from flyte_binary.rpc.identity import TrustedPeers
from flyte_binary.server import Server, build_app

APP = AppId("flytesnacks", "development", "my-app")
PREFIX = "/apps/flytesnacks/development/my-app"
LABEL = "my-app-flytesnacks-development"

Asgi = Callable[..., Awaitable[None]]
Raw = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class OneApp:
    """An activator that knows one app, which runs."""

    port: int = 0
    request_timeout: float = 30.0
    refusal: Exception | None = None
    ready: asyncio.Event | None = None
    """Requests wait for it, if there is one."""

    waiting: int = 0
    leased: int = 0

    def resolve(self, label: str) -> AppId | None:
        return APP if label == LABEL else None

    @asynccontextmanager
    async def lease(self, app: AppId) -> AsyncGenerator[Upstream]:
        if app != APP:
            raise NoSuchApp(app)
        if self.refusal is not None:
            raise self.refusal
        if self.ready is not None:
            self.waiting += 1
            try:
                await self.ready.wait()
            finally:
                self.waiting -= 1
        self.leased += 1
        try:
            yield Upstream("127.0.0.1", self.port, self.request_timeout)
        finally:
            self.leased -= 1


@dataclass
class Ingress:
    activator: OneApp
    port: int
    server: Server
    client: httpx.AsyncClient
    pool: Pool
    _closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list[Callable[[], Awaitable[None]]])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PREFIX}"

    async def serves(self, app: Asgi) -> None:
        """The app is this ASGI application under uvicorn."""
        config = uvicorn.Config(app, port=0, log_config=None, lifespan="off", ws="none", server_header=False)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - it has no event for that
            await asyncio.sleep(0.005)
        self.activator.port = server.servers[0].sockets[0].getsockname()[1]

        async def close() -> None:
            server.should_exit = server.force_exit = True
            await task

        self._closing.append(close)

    async def serves_raw(self, handler: Raw) -> None:
        """The app is what this makes of connections."""
        writers: list[asyncio.StreamWriter] = []

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await handler(reader, writer)

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        self.activator.port = server.sockets[0].getsockname()[1]

        async def close() -> None:
            server.close()
            for writer in writers:
                writer.close()

        self._closing.append(close)

    async def raw(self, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        await writer.drain()
        return reader, writer

    async def ask(self, request: bytes) -> bytes:
        """All that comes until the connection is closed."""
        reader, writer = await self.raw(request)
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
        return answer

    async def close(self) -> None:
        for close in self._closing:
            await close()


@pytest.fixture
async def ingress() -> AsyncIterator[Ingress]:
    activator, pool = OneApp(), Pool()
    drain = Drain()
    server = Server(app=_unused, drain=drain, port=0, upgrades=Tunnel)
    port = server.bind()
    server.app = build_app(
        RpcApplication([], CallSettings(drain=drain)),
        drain=drain,
        routes=console_routes(console_folder()),
        ingress=Middleware(
            AppIngress,
            activator=activator,
            trusted_peers=TrustedPeers(["127.0.0.2"]),
            pool=pool,
            drain=drain,
            own_hosts=["flyte.localhost"],
        ),
    )
    serving = asyncio.create_task(server.serve())
    await server.until_started()
    async with httpx.AsyncClient(timeout=20) as client:
        found = Ingress(activator, port, server, client, pool)
        yield found
        server.stop()
        await serving
        pool.close_all()
        await found.close()


async def _unused(*_: object) -> None:
    raise AssertionError("served before it was built")


async def body_of(receive: Callable[[], Awaitable[dict[str, object]]]) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(bytes(message.get("body", b"")))  # pyright: ignore[reportArgumentType]
        if not message.get("more_body"):
            return b"".join(parts)


async def reply(
    send: Callable[..., Awaitable[None]], body: bytes, *headers: tuple[bytes, bytes], status: int = 200
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})
