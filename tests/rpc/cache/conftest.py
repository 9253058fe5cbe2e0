"""CacheService behind a real Connect client and a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from flyteidl2.cacheservice.v2.cacheservice_connect import CacheServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.cache.reservations import Heartbeats
from flyte_binary.cache.service import CacheService
from flyte_binary.db.database import Database
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.mount import ServiceMount, mount
from tests.db_fixtures import Storage
from tests.fakes.manual_clock import ManualClock

HEARTBEATS = Heartbeats(longest=timedelta(seconds=10), grace_multiplier=3)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
async def database(storage: Storage, hub: Hub) -> AsyncIterator[Database]:
    database = storage.open(hub.publish)
    yield database
    await database.close()


@pytest.fixture
def cache(database: Database, clock: ManualClock) -> CacheServiceClient:
    service = CacheService(database, clock, HEARTBEATS)
    app = mount([ServiceMount("flyteidl2.cacheservice.v2.CacheService", service)])
    return CacheServiceClient("http://cache", http_client=Client(ASGITransport(app)))
