"""The data proxy behind the real transport and a real Connect client, on a disk store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pyqwest
import pytest
from flyteidl2.cluster.service_connect import ClusterServiceClient
from flyteidl2.dataproxy.dataproxy_service_connect import DataProxyServiceClient
from flyteidl2.imagebuilder.service_connect import ImageServiceClient
from pyqwest.testing import ASGITransport
from starlette.types import ASGIApp

from flyte_binary.config.model import Download, Upload
from flyte_binary.dataproxy.action_data import ActionDataReader
from flyte_binary.dataproxy.cluster import ClusterService
from flyte_binary.dataproxy.download_links import DownloadLinks
from flyte_binary.dataproxy.images import ImageService
from flyte_binary.dataproxy.inputs import InputUploads
from flyte_binary.dataproxy.log_tail import LogTails
from flyte_binary.dataproxy.require import KnownProjects
from flyte_binary.dataproxy.service import DataProxyService
from flyte_binary.dataproxy.signed_routes import signed_routes
from flyte_binary.dataproxy.uploads import Uploads
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.disconnect import Drain
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.server import Server, build_app
from flyte_binary.storage.disk import DiskStore
from flyte_binary.storage.signed import UrlSigner
from tests.fakes.dataproxy_ports import MemoryActions, MemoryLogs, MemoryProjects, MemoryRunBases, MemoryTasks

ORIGIN = "http://localhost:30080"
MAX_UPLOAD_BYTES = 4 * 1024 * 1024
ACTION_DATA_LIMIT_BYTES = 1024 * 1024


@dataclass
class Clock:
    now: datetime = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, by: timedelta) -> None:
        self.now += by


@dataclass
class World:
    app: ASGIApp
    store: DiskStore
    clock: Clock
    projects: MemoryProjects
    tasks: MemoryTasks
    bases: MemoryRunBases
    actions: MemoryActions
    live: MemoryLogs
    tails: LogTails
    client: DataProxyServiceClient
    cluster: ClusterServiceClient
    images: ImageServiceClient
    http: httpx.AsyncClient
    """Speaks to the same application as a browser or the SDK's upload does."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock, hub, signer = Clock(), Hub(), UrlSigner(b"k" * 32)
    store = DiskStore(tmp_path / "store", signer, sync=False, now=clock)
    await store.prepare()
    projects, tasks, actions, live = MemoryProjects("flytesnacks"), MemoryTasks(), MemoryActions(hub), MemoryLogs()
    bases = MemoryRunBases()
    known = KnownProjects(projects, {"development", "staging", "production"})
    upload, download = Upload(max_size_bytes=MAX_UPLOAD_BYTES), Download()
    tails = LogTails(actions, live, store, hub, limit=3, idle_seconds=0.02, not_yet_seconds=0.02)
    service = DataProxyService(
        uploads=Uploads(store, known, upload),
        inputs=InputUploads(store, known, tasks, bases),
        data=ActionDataReader(store, actions, limit_bytes=ACTION_DATA_LIMIT_BYTES),
        links=DownloadLinks(store, actions, tasks, download),
        logs=tails,
    )
    rpc = mount(
        [
            ServiceMount("flyteidl2.dataproxy.DataProxyService", service),
            ServiceMount("flyteidl2.cluster.ClusterService", ClusterService()),
            ServiceMount("flyteidl2.imagebuilder.ImageService", ImageService()),
        ]
    )
    routes = signed_routes(store, signer, max_upload_bytes=MAX_UPLOAD_BYTES, now=clock)
    app = build_app(rpc, drain=Drain(), routes=routes, allowed_hosts=["flyte.example.com"])
    transport = pyqwest.Client(ASGITransport(app))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
        yield World(
            app,
            store,
            clock,
            projects,
            tasks,
            bases,
            actions,
            live,
            tails,
            DataProxyServiceClient(ORIGIN, http_client=transport),
            ClusterServiceClient(ORIGIN, http_client=transport),
            ImageServiceClient(ORIGIN, http_client=transport),
            http,
        )
    store.close()


@pytest.fixture
async def port(world: World) -> AsyncIterator[int]:
    """The application behind a real socket."""
    server = Server(app=world.app, drain=Drain(), port=0)
    port = server.bind()
    serving = asyncio.create_task(server.serve(), name="server")
    await server.until_started()
    yield port
    server.stop()
    await serving


async def until(condition: Callable[[], bool]) -> None:
    """What happens in another thread or process has no event to wait on."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 -- see above
            await asyncio.sleep(0.01)
