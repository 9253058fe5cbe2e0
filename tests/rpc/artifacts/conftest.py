"""ArtifactService behind a real Connect client and a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.artifact.artifact_service_connect import ArtifactServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.db.database import Database
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.calls import CallSettings
from flyte_binary.rpc.disconnect import Drain
from flyte_binary.rpc.identity import OpenAccess, TrustedPeers
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.runs.artifacts.service import ArtifactService
from flyte_binary.runs.projects.service import seed_projects
from tests.db_fixtures import Storage
from tests.fakes.manual_clock import ManualClock


@dataclass(frozen=True)
class World:
    artifacts: ArtifactServiceClient
    database: Database
    clock: ManualClock


@pytest.fixture
async def world(storage: Storage) -> AsyncIterator[World]:
    clock = ManualClock()
    database = storage.open(Hub().publish)
    await database.write(lambda tx: seed_projects(tx, ["flytesnacks", "other"], clock.now()))
    service = ArtifactService(database=database, clock=clock, domains=("development", "production"))
    peers = TrustedPeers(["127.0.0.1"])
    app = mount(
        [ServiceMount("flyteidl2.artifact.ArtifactService", service)],
        CallSettings(
            drain=Drain(),
            authenticator=OpenAccess(trusted_peers=peers, subject_header="x-subject"),
            trusted_peers=peers,
        ),
    )
    client = ArtifactServiceClient("http://flyte", http_client=Client(ASGITransport(app)))
    yield World(artifacts=client, database=database, clock=clock)
    await database.close()


async def refused(call: Awaitable[object], code: Code) -> str:
    with pytest.raises(ConnectError) as caught:
        await call
    assert caught.value.code is code, caught.value.message
    return caught.value.message
