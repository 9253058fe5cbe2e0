"""The run, task and project services behind real Connect clients and a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from flyteidl2.project import project_service_pb2
from flyteidl2.project.project_service_connect import ProjectServiceClient
from flyteidl2.task.task_service_connect import TaskServiceClient
from flyteidl2.workflow.run_service_connect import RunServiceClient
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
from flyte_binary.runs.projects.service import ProjectService, seed_projects
from flyte_binary.runs.service import RunService
from flyte_binary.runs.tasks.service import TaskService
from tests.db_fixtures import Storage
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore

DOMAINS = ("development", "production", "staging")


@dataclass(frozen=True)
class Server:
    runs: RunServiceClient
    tasks: TaskServiceClient
    projects: ProjectServiceClient
    database: Database
    hub: Hub
    store: MemoryStore
    clock: ManualClock
    drain: Drain


@pytest.fixture
async def server(storage: Storage) -> AsyncIterator[Server]:
    hub, clock, store, drain = Hub(), ManualClock(), MemoryStore(), Drain()
    database = storage.open(hub.publish)
    await database.write(lambda tx: seed_projects(tx, ["flytesnacks"], clock.now()))
    runs = RunService(
        database=database,
        hub=hub,
        store=store,
        clock=clock,
        domains=DOMAINS,
        aborter=Aborter(database, clock),
        signaller=Signaller(database, clock),
    )
    tasks = TaskService(database=database, store=store, clock=clock, domains=DOMAINS)
    shown = [project_service_pb2.Domain(id=name, name=name.capitalize()) for name in DOMAINS]
    projects = ProjectService(database=database, clock=clock, domains=shown)
    peers = TrustedPeers(["127.0.0.1"])
    access = OpenAccess(trusted_peers=peers, subject_header="x-subject", email_header="x-email")
    app = mount(
        [
            ServiceMount("flyteidl2.workflow.RunService", runs),
            ServiceMount("flyteidl2.task.TaskService", tasks),
            ServiceMount("flyteidl2.project.ProjectService", projects),
        ],
        CallSettings(drain=drain, authenticator=access, trusted_peers=peers),
    )
    transport = Client(ASGITransport(app))
    yield Server(
        runs=RunServiceClient("http://flyte", http_client=transport),
        tasks=TaskServiceClient("http://flyte", http_client=transport),
        projects=ProjectServiceClient("http://flyte", http_client=transport),
        database=database,
        hub=hub,
        store=store,
        clock=clock,
        drain=drain,
    )
    await database.close()
