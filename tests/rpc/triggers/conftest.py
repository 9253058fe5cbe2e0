"""The trigger, task and run services behind real Connect clients and a real database, and schedulers beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.task.task_service_connect import TaskServiceClient
from flyteidl2.trigger.trigger_service_connect import TriggerServiceClient
from flyteidl2.workflow.run_service_connect import RunServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.signal import Signaller
from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.catchup import CatchupPolicy
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.calls import CallSettings
from flyte_binary.rpc.disconnect import Drain
from flyte_binary.rpc.identity import OpenAccess, TrustedPeers
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.runs.create import RunCreator
from flyte_binary.runs.projects.service import seed_projects
from flyte_binary.runs.service import RunService
from flyte_binary.runs.tasks.service import TaskService
from flyte_binary.runs.triggers.firing import Firing
from flyte_binary.runs.triggers.pace import Pace
from flyte_binary.runs.triggers.scheduler import CatchUp, TriggerScheduler
from flyte_binary.runs.triggers.service import TriggerService
from tests.db_fixtures import Storage
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore

DOMAINS = ("development", "production", "staging")


@dataclass(frozen=True)
class World:
    runs: RunServiceClient
    tasks: TaskServiceClient
    triggers: TriggerServiceClient
    database: Database
    storage: Storage
    hub: Hub
    store: MemoryStore
    clock: ManualClock

    def scheduler(
        self,
        *,
        database: Database | None = None,
        policy: CatchupPolicy = CatchupPolicy.LAST,
        limit: int = 100,
        pace: Pace | None = None,
        clock: Clock | None = None,
    ) -> TriggerScheduler:
        database, clock = database or self.database, clock or self.clock
        creator = RunCreator(database, self.store, clock, DOMAINS)
        return TriggerScheduler(
            database=database,
            hub=self.hub,
            clock=clock,
            firing=Firing(database, creator),
            pace=pace or Pace(1e6, 10**6),
            catch_up=CatchUp(policy=policy, limit=limit),
            resync=timedelta(seconds=30),
        )

    async def fired(self) -> list[ActionRow]:
        """The roots of all runs, by the time that they are for and the trigger."""
        rows = await self.database.read(lambda tx: tx.actions.unfinished())
        return sorted(rows, key=lambda row: (row.trigger_name, row.created_at, row.id))


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
    tasks = TaskService(database=database, store=store, clock=clock, domains=DOMAINS)
    triggers = TriggerService(database=database, store=store, clock=clock, domains=DOMAINS)
    peers = TrustedPeers(["127.0.0.1"])
    app = mount(
        [
            ServiceMount("flyteidl2.workflow.RunService", runs),
            ServiceMount("flyteidl2.task.TaskService", tasks),
            ServiceMount("flyteidl2.trigger.TriggerService", triggers),
        ],
        CallSettings(
            drain=Drain(),
            authenticator=OpenAccess(trusted_peers=peers, subject_header="x-subject"),
            trusted_peers=peers,
        ),
    )
    transport = Client(ASGITransport(app))
    yield World(
        runs=RunServiceClient("http://flyte", http_client=transport),
        tasks=TaskServiceClient("http://flyte", http_client=transport),
        triggers=TriggerServiceClient("http://flyte", http_client=transport),
        database=database,
        storage=storage,
        hub=hub,
        store=store,
        clock=clock,
    )
    await database.close()


async def refused(call: Awaitable[object], code: Code) -> str:
    with pytest.raises(ConnectError) as caught:
        await call
    assert caught.value.code is code, caught.value.message
    return caught.value.message
