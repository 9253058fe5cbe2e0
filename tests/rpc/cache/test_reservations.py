"""Who may compute while others wait."""

from __future__ import annotations

import asyncio

import pytest
from connectrpc.code import Code
from flyteidl2.cacheservice import cacheservice_pb2 as v1
from flyteidl2.cacheservice.v2 import cacheservice_pb2 as v2
from flyteidl2.cacheservice.v2.cacheservice_connect import CacheServiceClient
from google.protobuf.duration_pb2 import Duration

from flyte_binary.db.database import Database
from flyte_binary.db.moves import reservation_owner
from flyte_binary.domain import topics
from flyte_binary.domain.cache_entries import stored_key
from flyte_binary.domain.ids import ActionId
from flyte_binary.live.hub import Hub
from tests.fakes.manual_clock import ManualClock
from tests.rpc.cache.test_entries import PROJECT, refused

KEY = stored_key("flytesnacks", "development", "k")
ACTION = reservation_owner(ActionId("flytesnacks", "development", "r1", "a0"))


async def reserve(
    cache: CacheServiceClient, owner: str, heartbeat: Duration | None = None, key: str = "k"
) -> v1.Reservation:
    base = v1.GetOrExtendReservationRequest(key=key, owner_id=owner, heartbeat_interval=heartbeat)
    request = v2.GetOrExtendReservationRequest(base_request=base, identifier=PROJECT)
    return (await cache.get_or_extend_reservation(request)).reservation


async def release(cache: CacheServiceClient, owner: str) -> None:
    base = v1.ReleaseReservationRequest(key="k", owner_id=owner)
    await cache.release_reservation(v2.ReleaseReservationRequest(base_request=base, identifier=PROJECT))


async def test_the_first_owner_gets_it_and_the_second_is_told_who_has_it(
    cache: CacheServiceClient, clock: ManualClock
) -> None:
    mine = await reserve(cache, "one", Duration(seconds=5))

    assert mine.key == f"reservation:{KEY}"
    assert mine.owner_id == "one"
    assert mine.heartbeat_interval.seconds == 5
    assert mine.expires_at.ToMicroseconds() == clock.now() + 15_000_000
    assert await reserve(cache, "two") == mine


async def test_of_many_who_ask_at_once_one_gets_it(cache: CacheServiceClient) -> None:
    answers = await asyncio.gather(*(reserve(cache, f"owner-{number}") for number in range(20)))

    assert len({answer.owner_id for answer in answers}) == 1


async def test_a_heartbeat_extends_it(cache: CacheServiceClient, clock: ManualClock) -> None:
    await reserve(cache, "one", Duration(seconds=5))
    clock.advance(seconds=14)

    extended = await reserve(cache, "one", Duration(seconds=5))
    clock.advance(seconds=14)

    assert extended.expires_at.ToMicroseconds() == clock.now() + 1_000_000
    assert (await reserve(cache, "two")).owner_id == "one"


async def test_without_heartbeats_it_falls_to_the_next_who_asks(cache: CacheServiceClient, clock: ManualClock) -> None:
    await reserve(cache, "one", Duration(seconds=5))
    clock.advance(seconds=15)

    assert (await reserve(cache, "two")).owner_id == "two"


@pytest.mark.parametrize("asked", [None, Duration(seconds=11), Duration(seconds=-1)])
async def test_who_asks_for_no_possible_heartbeat_gets_the_longest(
    cache: CacheServiceClient, clock: ManualClock, asked: Duration | None
) -> None:
    granted = await reserve(cache, "one", asked)

    assert granted.heartbeat_interval.seconds == 10
    assert granted.expires_at.ToMicroseconds() == clock.now() + 30_000_000


async def test_a_heartbeat_below_a_second_still_expires_when_it_should(
    cache: CacheServiceClient, clock: ManualClock
) -> None:
    await reserve(cache, "one", Duration(nanos=500_000_000))
    clock.advance(seconds=1.4)
    assert (await reserve(cache, "two")).owner_id == "one"
    clock.advance(seconds=0.1)

    assert (await reserve(cache, "two")).owner_id == "two"


async def test_a_released_reservation_is_free_and_announced(cache: CacheServiceClient, hub: Hub) -> None:
    await reserve(cache, "one")
    with hub.subscribe(topics.CACHE) as subscription:
        await release(cache, "one")
        assert subscription.take() == {(KEY,)}

    assert (await reserve(cache, "two")).owner_id == "two"


async def test_nobody_releases_what_another_holds(cache: CacheServiceClient, hub: Hub) -> None:
    await reserve(cache, "one")
    with hub.subscribe(topics.CACHE) as subscription:
        await release(cache, "two")
        assert subscription.take() == set()

    assert (await reserve(cache, "two")).owner_id == "one"


async def test_what_an_action_holds_never_expires(
    cache: CacheServiceClient, database: Database, clock: ManualClock
) -> None:
    await database.write(lambda tx: tx.cache.reserve(KEY, ACTION, at=clock.now()))
    clock.advance(seconds=86_400)

    answer = await reserve(cache, "one")

    assert answer.owner_id == "action:flytesnacks/development/r1/a0"
    assert answer.expires_at.ToMicroseconds() == clock.now() + 30_000_000


async def test_nobody_outside_can_pass_for_an_action(
    cache: CacheServiceClient, database: Database, clock: ManualClock
) -> None:
    await database.write(lambda tx: tx.cache.reserve(KEY, ACTION, at=clock.now()))

    await reserve(cache, ACTION)
    await release(cache, ACTION)

    held = await database.read(lambda tx: tx.cache.reservation(KEY))
    assert held is not None
    assert (held.owner, held.expires_at) == (ACTION, None)


async def test_an_action_takes_over_what_an_outside_owner_let_expire(
    cache: CacheServiceClient, database: Database, clock: ManualClock
) -> None:
    await reserve(cache, "one", Duration(seconds=5))
    early = await database.write(lambda tx: tx.cache.reserve(KEY, ACTION, at=clock.now()))
    clock.advance(seconds=15)

    late = await database.write(lambda tx: tx.cache.reserve(KEY, ACTION, at=clock.now()))

    assert (early.owner, late.owner) == ("outside:one", ACTION)


async def test_a_reservation_without_an_owner_names_the_field(cache: CacheServiceClient) -> None:
    assert "base_request.owner_id" in await refused(reserve(cache, ""), Code.INVALID_ARGUMENT)
    assert "base_request.owner_id" in await refused(release(cache, ""), Code.INVALID_ARGUMENT)
    assert "base_request.key" in await refused(reserve(cache, "one", key=""), Code.INVALID_ARGUMENT)
