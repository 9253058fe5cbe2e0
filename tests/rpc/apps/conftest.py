"""The two services of apps behind real Connect clients and a real database, and the passes over a backend in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.app import app_definition_pb2
from flyteidl2.app import app_payload_pb2 as pb
from flyteidl2.app.app_logs_service_connect import AppLogsServiceClient
from flyteidl2.app.app_service_connect import AppServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.app import logs_service, service
from flyte_binary.app.apps import Apps
from flyte_binary.app.logs_service import AppLogsService
from flyte_binary.app.reconciler import AppReconciler
from flyte_binary.app.service import AppService
from flyte_binary.db.apps import AppRow
from flyte_binary.db.database import Database
from flyte_binary.domain.ids import AppId
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.calls import CallSettings
from flyte_binary.rpc.disconnect import Drain
from flyte_binary.rpc.identity import OpenAccess, TrustedPeers
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.runs.projects.service import seed_projects
from tests.db_fixtures import Storage
from tests.fakes.app_backend import FakeAppBackend, FakeAppLogs
from tests.fakes.manual_clock import ManualClock

DOMAINS = ("development", "production", "staging")
Status = app_definition_pb2.Status.DeploymentStatus


@dataclass(frozen=True)
class World:
    apps: AppServiceClient
    logs: AppLogsServiceClient
    database: Database
    hub: Hub
    backend: FakeAppBackend
    app_logs: FakeAppLogs
    clock: ManualClock
    _passes: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    def start_passes(self) -> None:
        reconciler = AppReconciler(self.database, self.backend, self.clock)
        apps = Apps(self.database, self.hub, self.backend, reconciler)
        self._passes.append(asyncio.create_task(apps.run()))

    async def stop_passes(self) -> None:
        for task in self._passes:
            task.cancel()
        await asyncio.gather(*self._passes, return_exceptions=True)
        self._passes.clear()

    async def create(self, app: app_definition_pb2.App) -> app_definition_pb2.App:
        return (await self.apps.create(pb.CreateRequest(app=app))).app

    async def get(self, app: AppId) -> app_definition_pb2.App:
        return (await self.apps.get(pb.GetRequest(app_id=app.to_proto()))).app

    async def row(self, app: AppId) -> AppRow | None:
        return await self.database.read(lambda tx: tx.apps.get(app))

    async def until(self, app: AppId, status: int, *, seconds: float = 5) -> app_definition_pb2.App:
        """The app when its last condition says so."""
        async with asyncio.timeout(seconds):
            while True:
                found = await self.get(app)
                if found.status.conditions and found.status.conditions[-1].deployment_status == status:
                    return found
                await asyncio.sleep(0.01)

    async def until_gone(self, app: AppId, *, seconds: float = 5) -> None:
        """Until there is no row of it."""
        async with asyncio.timeout(seconds):
            while await self.row(app) is not None:  # noqa: ASYNC110 - rows have no events
                await asyncio.sleep(0.01)


@pytest.fixture
async def world(storage: Storage) -> AsyncIterator[World]:
    hub, clock, backend, app_logs = Hub(), ManualClock(), FakeAppBackend(), FakeAppLogs()
    database = storage.open(hub.publish)
    await database.write(lambda tx: seed_projects(tx, ["flytesnacks", "other"], clock.now()))
    apps = AppService(
        database=database,
        hub=hub,
        backend=backend,
        clock=clock,
        domains=DOMAINS,
        longest_request=timedelta(hours=1),
    )
    peers = TrustedPeers(["127.0.0.1"])
    app = mount(
        [
            ServiceMount(service.FULL_NAME, apps),
            ServiceMount(logs_service.FULL_NAME, AppLogsService(database, app_logs, limit=2)),
        ],
        CallSettings(
            drain=Drain(),
            authenticator=OpenAccess(trusted_peers=peers, subject_header="x-subject"),
            trusted_peers=peers,
        ),
    )
    transport = Client(ASGITransport(app))
    world = World(
        apps=AppServiceClient("http://flyte", http_client=transport),
        logs=AppLogsServiceClient("http://flyte", http_client=transport),
        database=database,
        hub=hub,
        backend=backend,
        app_logs=app_logs,
        clock=clock,
    )
    yield world
    await world.stop_passes()
    await database.close()


async def refused(call: Awaitable[object], code: Code) -> str:
    with pytest.raises(ConnectError) as caught:
        await call
    assert caught.value.code is code, caught.value.message
    return caught.value.message
