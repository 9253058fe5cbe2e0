"""SettingsService and RunService behind real Connect clients and a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.settings.settings_service_connect import SettingsServiceClient
from flyteidl2.workflow.run_service_connect import RunServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.signal import Signaller
from flyte_binary.db.database import Database
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.runs.projects.service import seed_projects
from flyte_binary.runs.service import RunService
from flyte_binary.runs.settings.service import SettingsService
from tests.db_fixtures import Storage
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore

DOMAINS = ("development", "production")


@dataclass(frozen=True)
class World:
    settings: SettingsServiceClient
    runs: RunServiceClient
    store: MemoryStore
    database: Database


@pytest.fixture
async def world(storage: Storage) -> AsyncIterator[World]:
    hub, clock, store = Hub(), ManualClock(), MemoryStore()
    database = storage.open(hub.publish)
    await database.write(lambda tx: seed_projects(tx, ["flytesnacks", "other"], clock.now()))
    runs = RunService(
        database=database,
        hub=hub,
        store=store,
        clock=clock,
        domains=DOMAINS,
        aborter=Aborter(database, clock),
        signaller=Signaller(database, clock),
    )
    app = mount(
        [
            ServiceMount("flyteidl2.workflow.RunService", runs),
            ServiceMount("flyteidl2.settings.SettingsService", SettingsService(database, store, clock)),
        ]
    )
    transport = Client(ASGITransport(app))
    yield World(
        settings=SettingsServiceClient("http://flyte", http_client=transport),
        runs=RunServiceClient("http://flyte", http_client=transport),
        store=store,
        database=database,
    )
    await database.close()


async def refused(call: Awaitable[object], code: Code) -> str:
    with pytest.raises(ConnectError) as caught:
        await call
    assert caught.value.code is code, caught.value.message
    return caught.value.message
