"""The older contract finds what the newer one stored without a project, and the other way round."""

from __future__ import annotations

import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from flyteidl2.cacheservice import cacheservice_pb2 as v1
from flyteidl2.cacheservice.cacheservice_connect import CacheServiceClient as OldClient
from flyteidl2.cacheservice.v2 import cacheservice_pb2 as v2
from flyteidl2.cacheservice.v2.cacheservice_connect import CacheServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.cache.service import CacheService
from flyte_binary.cache.v1_service import CacheServiceV1
from flyte_binary.db.database import Database
from flyte_binary.rpc.mount import ServiceMount, mount
from tests.fakes.manual_clock import ManualClock
from tests.rpc.cache.conftest import HEARTBEATS


@pytest.fixture
def old(database: Database, clock: ManualClock) -> OldClient:
    entries = CacheService(database, clock, HEARTBEATS)
    app = mount([ServiceMount("flyteidl2.cacheservice.CacheService", CacheServiceV1(entries))])
    return OldClient("http://flyte", http_client=Client(ASGITransport(app)))


def put(key: str, uri: str) -> v1.PutCacheRequest:
    request = v1.PutCacheRequest(key=key)
    request.output.output_uri = uri
    return request


async def test_an_entry_is_stored_found_kept_and_forgotten(old: OldClient) -> None:
    await old.put(put("k", "/store/one"))
    assert (await old.get(v1.GetCacheRequest(key="k"))).output.output_uri == "/store/one"
    with pytest.raises(ConnectError) as raised:
        await old.put(put("k", "/store/two"))
    assert raised.value.code is Code.ALREADY_EXISTS
    await old.delete(v1.DeleteCacheRequest(key="k"))
    with pytest.raises(ConnectError) as raised:
        await old.get(v1.GetCacheRequest(key="k"))
    assert raised.value.code is Code.NOT_FOUND


async def test_both_versions_share_entries_without_a_project(old: OldClient, cache: CacheServiceClient) -> None:
    await old.put(put("k", "/store/one"))

    found = await cache.get(v2.GetCacheRequest(base_request=v1.GetCacheRequest(key="k")))

    assert found.output.output_uri == "/store/one"


async def test_a_reservation_has_one_owner(old: OldClient) -> None:
    first = await old.get_or_extend_reservation(v1.GetOrExtendReservationRequest(key="k", owner_id="one"))
    second = await old.get_or_extend_reservation(v1.GetOrExtendReservationRequest(key="k", owner_id="two"))
    assert (first.reservation.owner_id, second.reservation.owner_id) == ("one", "one")
    await old.release_reservation(v1.ReleaseReservationRequest(key="k", owner_id="one"))
    third = await old.get_or_extend_reservation(v1.GetOrExtendReservationRequest(key="k", owner_id="two"))
    assert third.reservation.owner_id == "two"
