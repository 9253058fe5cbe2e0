"""The transport with the probe behind it: in process, and on a real port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import httpx
import pyqwest
import pytest
from flyteidl2.workflow.run_service_connect import RunServiceClient
from prometheus_client import CollectorRegistry
from pyqwest.testing import ASGITransport
from starlette.types import ASGIApp

from flyte_binary.rpc.access_log import AccessLog
from flyte_binary.rpc.calls import CallSettings
from flyte_binary.rpc.identity import OpenAccess, TrustedPeers
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.server import Server, build_app
from tests.rpc.transport.probe import InternalProbe, Probe

LIMIT_BYTES = 1024 * 1024
RUN_SERVICE = "flyteidl2.workflow.RunService"


@dataclass
class World:
    probe: Probe
    internal: InternalProbe
    settings: CallSettings
    registry: CollectorRegistry
    app: ASGIApp


@dataclass
class Served:
    world: World
    server: Server
    port: int
    task: asyncio.Task[None]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def world() -> World:
    registry = CollectorRegistry()
    peers = TrustedPeers(["10.0.0.0/8"])
    settings = CallSettings(
        limit_bytes=LIMIT_BYTES,
        access_log=AccessLog(registry),
        trusted_peers=peers,
        authenticator=OpenAccess(trusted_peers=peers, claims_header="x-claims", subject_header="x-subject"),
    )
    probe, internal = Probe(), InternalProbe()
    services = [
        ServiceMount(RUN_SERVICE, probe),
        ServiceMount("flyteidl2.workflow.InternalRunService", internal),
    ]
    app = build_app(mount(services, settings), drain=settings.drain, registry=registry)
    return World(probe, internal, settings, registry, app)


@pytest.fixture
def probe(world: World) -> Probe:
    return world.probe


@pytest.fixture
def client(world: World) -> RunServiceClient:
    return RunServiceClient("http://localhost", http_client=pyqwest.Client(ASGITransport(world.app)))


@pytest.fixture
async def http(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """Plain HTTP in process; whole bodies only."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://localhost") as client:
        yield client


@pytest.fixture
async def served(world: World) -> AsyncIterator[Served]:
    server = Server(app=world.app, drain=world.settings.drain, port=0, shutdown_timeout=timedelta(seconds=5))
    port = server.bind()
    task = asyncio.create_task(server.serve(), name="server under test")
    await server.until_started()
    yield Served(world, server, port, task)
    server.stop()
    async with asyncio.timeout(10):
        await task
