"""Servers on one database divide the actions among them, and nobody writes for what it no longer holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from flyte_binary.control.shards import (
    SHARDS,
    Fenced,
    FencedDatabase,
    LeasedShards,
    acting,
    part_of,
    shard_of,
)
from flyte_binary.db.database import Database
from flyte_binary.db.leases import ServerRow
from flyte_binary.domain.ids import RunId
from flyte_binary.live.hub import Hub
from tests.db_fixtures import Storage

LEASE, MARGIN = timedelta(seconds=1), timedelta(seconds=0.2)
DEADLINE_SECONDS = 10
RUN = RunId("p", "d", "r1")


class Member:
    """One server, as far as shards go."""

    def __init__(self, name: str, storage: Storage) -> None:
        hub = Hub()
        self.name = name
        self.database: Database = storage.open(hub.publish)
        self.shards = LeasedShards(self.database, hub, ServerRow(id=name, node="here"), lease=LEASE, margin=MARGIN)
        self.fenced = FencedDatabase(self.database, name)
        self.taken = 0
        self.servers = 0
        self.running = asyncio.create_task(self.shards.run(self._taken, self._changed), name=f"shards-{name}")

    def _taken(self) -> None:
        self.taken += 1

    def _changed(self, servers: int) -> None:
        self.servers = servers

    async def stop(self) -> None:
        self.running.cancel()
        await asyncio.wait({self.running})
        await self.database.close()

    async def die(self) -> None:
        """Without giving anything back."""
        self.shards._leave = _nothing  # type: ignore[method-assign]  # as a killed process
        await self.stop()


async def _nothing() -> None:
    pass


@pytest.fixture
async def join(storage: Storage) -> AsyncIterator[Callable[[str], Member]]:
    members: list[Member] = []

    def join(name: str) -> Member:
        members.append(Member(name, storage))
        return members[-1]

    yield join
    for member in members:
        await member.stop()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110  # of several tasks and a database
            await asyncio.sleep(0.02)


def test_every_action_has_one_shard_and_they_are_spread() -> None:
    shards = [shard_of(RUN.action(f"a{number}")) for number in range(2000)]

    assert set(shards) == set(range(SHARDS))
    assert shard_of(RUN.action("a7")) == shards[7]


@pytest.mark.parametrize("living", [1, 2, 3, 5, 7])
def test_parts_are_equal_and_add_up(living: int) -> None:
    names = [f"s{number}" for number in range(living)]
    parts = [part_of(name, names) for name in names]

    assert sum(parts) == SHARDS
    assert max(parts) - min(parts) <= 1


async def test_one_has_all_and_a_second_gets_half(join: Callable[[str], Member]) -> None:
    first = join("one")
    await until(lambda: len(first.shards.held()) == SHARDS)
    second = join("two")
    await until(lambda: len(second.shards.held()) == SHARDS // 2 and len(first.shards.held()) == SHARDS // 2)

    assert first.shards.held() | second.shards.held() == frozenset(range(SHARDS))
    assert (first.servers, second.servers) == (2, 2)


async def test_what_a_stopped_server_held_is_taken_at_once(join: Callable[[str], Member]) -> None:
    first, second = join("one"), join("two")
    await until(lambda: len(second.shards.held()) == SHARDS // 2 and len(first.shards.held()) == SHARDS // 2)
    await second.stop()

    await until(lambda: len(first.shards.held()) == SHARDS)
    assert first.taken >= 2


async def test_what_a_killed_server_held_is_taken_when_its_leases_run_out(join: Callable[[str], Member]) -> None:
    first, second = join("one"), join("two")
    await until(lambda: len(second.shards.held()) == SHARDS // 2 and len(first.shards.held()) == SHARDS // 2)
    await second.die()
    assert len(first.shards.held()) == SHARDS // 2

    await until(lambda: len(first.shards.held()) == SHARDS)


async def test_a_write_under_a_lease_that_another_has_taken_is_dropped(join: Callable[[str], Member]) -> None:
    first = join("one")
    await until(lambda: len(first.shards.held()) == SHARDS)
    action = RUN.action("a0")
    old = first.shards.lease_of(action)
    assert old is not None
    with acting(old):
        await first.fenced.write(lambda tx: None)
    await first.die()
    second = join("two")
    await until(lambda: second.shards.lease_of(action) is not None)
    again = FencedDatabase(second.database, "one")

    with acting(old), pytest.raises(Fenced):
        await again.write(lambda tx: None)
    new = second.shards.lease_of(action)
    assert new is not None and new.epoch > old.epoch
    with acting(new):
        await second.fenced.write(lambda tx: None)


async def test_a_server_that_cannot_renew_begins_nothing_any_more(
    join: Callable[[str], Member], tmp_path: Path
) -> None:
    first = join("one")
    await until(lambda: len(first.shards.held()) == SHARDS)
    first.running.cancel()
    await asyncio.wait({first.running})

    assert first.shards.lease_of(RUN.action("a0")) is None
