"""The services of tracked and of other runs behind real Connect clients and a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.workflow.run_service_connect import RunServiceClient
from flyteidl2.workflow.tracked_run_service_connect import TrackedRunServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.signal import Signaller
from flyte_binary.db.database import Database
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.calls import CallSettings
from flyte_binary.rpc.disconnect import Drain
from flyte_binary.rpc.identity import OpenAccess, TrustedPeers
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.runs.projects.service import seed_projects
from flyte_binary.runs.service import RunService
from flyte_binary.runs.tracked.service import TrackedRunService
from tests.db_fixtures import Storage
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore

DOMAINS = ("development", "production", "staging")
UPLOADS = "/store/uploads"


@dataclass(frozen=True)
class World:
    tracked: TrackedRunServiceClient
    runs: RunServiceClient
    database: Database
    clock: ManualClock
    drain: Drain


@pytest.fixture
async def world(storage: Storage) -> AsyncIterator[World]:
    hub, clock, store, drain = Hub(), ManualClock(), MemoryStore(), Drain()
    database = storage.open(hub.publish)
    await database.write(lambda tx: seed_projects(tx, ["flytesnacks"], clock.now()))
    aborter, signaller = Aborter(database, clock), Signaller(database, clock)
    runs = RunService(
        database=database, hub=hub, store=store, clock=clock, domains=DOMAINS, aborter=aborter, signaller=signaller
    )
    tracked = TrackedRunService(
        database=database,
        hub=hub,
        store=store,
        clock=clock,
        domains=DOMAINS,
        aborter=aborter,
        signaller=signaller,
        uploads=UPLOADS,
    )
    peers = TrustedPeers(["127.0.0.1"])
    app = mount(
        [
            ServiceMount("flyteidl2.workflow.RunService", runs),
            ServiceMount("flyteidl2.workflow.TrackedRunService", tracked),
        ],
        CallSettings(
            drain=drain, authenticator=OpenAccess(trusted_peers=peers, subject_header="x-subject"), trusted_peers=peers
        ),
    )
    transport = Client(ASGITransport(app))
    yield World(
        tracked=TrackedRunServiceClient("http://flyte", http_client=transport),
        runs=RunServiceClient("http://flyte", http_client=transport),
        database=database,
        clock=clock,
        drain=drain,
    )
    await database.close()


async def refused(call: Awaitable[object], code: Code) -> str:
    with pytest.raises(ConnectError) as caught:
        await call
    assert caught.value.code is code, caught.value.message
    return caught.value.message
