"""The services that write actions, behind real Connect clients and a real database with one running root `a0`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from flyteidl2.workflow.events_proxy_service_connect import EventsProxyServiceClient
from flyteidl2.workflow.internal_run_service_connect import InternalRunServiceClient
from flyteidl2.workflow.queue_service_connect import QueueServiceClient
from flyteidl2.workflow.state_service_connect import StateServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.enqueue import Enqueuer
from flyte_binary.actions.events_proxy import EventsProxy
from flyte_binary.actions.internal_runs import InternalRunService
from flyte_binary.actions.queue_state import QueueService, StateService
from flyte_binary.actions.recorded_events import EventRecorder
from flyte_binary.actions.updates import Updates
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.application import RpcApplication
from flyte_binary.rpc.mount import ServiceMount, mount
from tests.db_fixtures import Storage
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from tests.rpc.actions_internal.world import World, make_row


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
async def database(storage: Storage, hub: Hub, clock: ManualClock) -> AsyncIterator[Database]:
    database = storage.open(hub.publish)
    root: ActionRow = make_row("a0", None, clock.now(), run_output_base="/store/r1")
    await database.write(lambda tx: tx.actions.insert(root))
    yield database
    await database.close()


@pytest.fixture
def world(database: Database, clock: ManualClock) -> World:
    return World(database, clock)


@pytest.fixture
def app(database: Database, hub: Hub, clock: ManualClock) -> RpcApplication:
    recorder = EventRecorder(database, clock)
    queue = QueueService(Enqueuer(database, MemoryStore(), clock), Aborter(database, clock))
    return mount(
        [
            ServiceMount("flyteidl2.workflow.InternalRunService", InternalRunService(database, clock, recorder)),
            ServiceMount("flyteidl2.workflow.EventsProxyService", EventsProxy(recorder)),
            ServiceMount("flyteidl2.workflow.QueueService", queue),
            ServiceMount("flyteidl2.workflow.StateService", StateService(database, Updates(database, hub))),
        ]
    )


@pytest.fixture
def http(app: RpcApplication) -> Client:
    return Client(ASGITransport(app))


@pytest.fixture
def internal(http: Client) -> InternalRunServiceClient:
    return InternalRunServiceClient("http://actions", http_client=http)


@pytest.fixture
def events_proxy(http: Client) -> EventsProxyServiceClient:
    return EventsProxyServiceClient("http://actions", http_client=http)


@pytest.fixture
def queue(http: Client) -> QueueServiceClient:
    return QueueServiceClient("http://actions", http_client=http)


@pytest.fixture
def state(http: Client) -> StateServiceClient:
    return StateServiceClient("http://actions", http_client=http)
