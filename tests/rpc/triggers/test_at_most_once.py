"""Two servers on one database, each with a scheduler: a time is fired once, whatever happens to one of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest
from flyteidl2.task import run_pb2 as task_run_pb2

from flyte_binary.db.database import Database, Operation
from flyte_binary.domain.catchup import CatchupPolicy
from flyte_binary.domain.ids import RunId
from flyte_binary.live.hub import Hub
from tests.rpc.triggers.conftest import World
from tests.rpc.triggers.messages import cron, deploy, deploy_task, deployment, details, set_active

T = TypeVar("T")


class Killed(BaseException):
    """Nothing of the server goes on behind this."""


class Doomed:
    """A database whose server dies at its next write, before or after the commit."""

    def __init__(self, database: Database, *, after_commit: bool) -> None:
        self._database = database
        self._after_commit = after_commit

    async def read(self, operation: Operation[T]) -> T:
        return await self._database.read(operation)

    async def point(self, operation: Operation[T]) -> T:
        return await self._database.point(operation)

    async def write(self, operation: Operation[T], *, run: RunId | None = None) -> T:
        if self._after_commit:
            await self._database.write(operation, run=run)
        raise Killed

    async def ping(self) -> None: ...

    async def close(self) -> None: ...


class Delayed(Doomed):
    """A database in which something else happens between a server's decision and its write."""

    def __init__(self, database: Database, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__(database, after_commit=False)
        self._meanwhile = meanwhile

    async def write(self, operation: Operation[T], *, run: RunId | None = None) -> T:
        await self._meanwhile()
        return await self._database.write(operation, run=run)


@pytest.fixture
async def other(world: World) -> AsyncIterator[Database]:
    """The same database, opened by a second server."""
    database = world.storage.open(Hub().publish)
    yield database
    await database.close()


async def times(world: World) -> list[int]:
    """In seconds since the clock's start, for each run there is."""
    specs = [task_run_pb2.RunSpec.FromString(row.run_spec or b"") for row in await world.fired()]
    return sorted(spec.run_start_time.seconds - 1_700_000_000 for spec in specs)


async def test_two_schedulers_that_race_fire_each_time_once(world: World, other: Database) -> None:
    await deploy_task(world)
    for number in range(10):
        await deploy(world, deployment(f"t{number}", cron("@every 60s")))
    one, two = world.scheduler(), world.scheduler(database=other)
    for _ in range(5):
        world.clock.advance(seconds=60)
        dues = await asyncio.gather(one.fire_due(), two.fire_due(), one.fire_due())
        assert set(dues) == {world.clock.now() + 60_000_000}
    assert await times(world) == sorted([60, 120, 180, 240, 300] * 10)


async def test_two_schedulers_that_catch_up_together_fire_each_time_once(world: World, other: Database) -> None:
    await deploy_task(world)
    for number in range(3):
        await deploy(world, deployment(f"t{number}", cron("@every 60s")))
    world.clock.advance(seconds=600)
    one = world.scheduler(policy=CatchupPolicy.ALL)
    two = world.scheduler(policy=CatchupPolicy.ALL, database=other)
    await asyncio.gather(one.fire_due(), two.fire_due())
    # Whoever was overtaken left the rest to the other.
    assert await times(world) == sorted([60 * number for number in range(1, 11)] * 3)


@pytest.mark.parametrize("after_commit", [False, True])
async def test_a_server_that_dies_while_it_fires_leaves_one_run_in_the_end(
    world: World, other: Database, after_commit: bool
) -> None:
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("@every 60s")))
    world.clock.advance(seconds=60)
    dying = world.scheduler(database=Doomed(world.database, after_commit=after_commit))
    with pytest.raises(BaseExceptionGroup):
        await dying.fire_due()
    assert await times(world) == ([60] if after_commit else [])

    survivor = world.scheduler(database=other)
    await survivor.fire_due()
    assert await times(world) == [60]
    assert (await details(world)).status.triggered_at.ToMicroseconds() == world.clock.now()
    world.clock.advance(seconds=60)
    await survivor.fire_due()
    assert await times(world) == [60, 120]


async def test_a_server_that_was_slow_makes_no_run_that_another_made_already(world: World, other: Database) -> None:
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("@every 60s")))
    world.clock.advance(seconds=60)
    fast = world.scheduler(database=other)
    await world.scheduler(database=Delayed(world.database, fast.fire_due)).fire_due()
    assert await times(world) == [60]


async def test_a_trigger_that_was_deactivated_at_the_last_moment_makes_no_run(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("@every 60s")))
    world.clock.advance(seconds=60)
    slow = Delayed(world.database, lambda: set_active(world, False, "daily"))
    await world.scheduler(database=slow).fire_due()
    assert await times(world) == []


async def test_a_trigger_that_was_deployed_anew_at_the_last_moment_runs_as_it_is_now(world: World) -> None:
    await deploy_task(world)
    await deploy_task(world, version="v2")
    await deploy(world, deployment(automation=cron("@every 60s")))
    world.clock.advance(seconds=60)
    again = deployment(automation=cron("@every 60s"), version="v2")
    await world.scheduler(database=Delayed(world.database, lambda: deploy(world, again))).fire_due()
    assert await times(world) == []
    await world.scheduler().fire_due()
    (row,) = await world.fired()
    assert row.task is not None and (row.task.version, row.trigger_revision) == ("v2", 2)
