"""The scheduler: what is fired, when, with what, and what becomes of times that were missed or failed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from time import monotonic

import pytest
from flyteidl2.common import run_pb2
from flyteidl2.task import common_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.workflow import run_definition_pb2
from structlog.testing import capture_logs

from flyte_binary.control.clock import SystemClock
from flyte_binary.db.rows import ActionRow
from flyte_binary.domain import topics
from flyte_binary.domain.catchup import CatchupPolicy
from flyte_binary.domain.errors import Unavailable
from flyte_binary.domain.timestamps import from_micros, to_micros
from flyte_binary.runs.triggers.pace import Pace
from tests.rpc.runs.messages import inputs
from tests.rpc.triggers.conftest import World
from tests.rpc.triggers.messages import cron, delete, deploy, deploy_task, deployment, details, set_active

DEADLINE_SECONDS = 10


def at(world: World, text: str) -> None:
    world.clock.moment = to_micros(datetime.fromisoformat(text).replace(tzinfo=UTC))


def time_of(row: ActionRow) -> str:
    """The time that a run is for."""
    spec = task_run_pb2.RunSpec.FromString(row.run_spec or b"")
    return from_micros(spec.run_start_time.ToMicroseconds()).strftime("%H:%M:%S")


async def fired(world: World) -> list[tuple[str, str]]:
    return sorted((time_of(row), row.trigger_name) for row in await world.fired())


@pytest.fixture
async def hourly(world: World) -> World:
    at(world, "2026-11-30T22:56:16")
    await deploy_task(world, name="trigenv.tt")
    request = deployment("hourly", cron("0 * * * *", kickoff="t"), task="trigenv.tt", inputs=inputs(x=5))
    await deploy(world, request)
    return world


async def test_a_run_is_made_at_its_time_with_its_inputs_under_the_reference_name(hourly: World) -> None:
    scheduler = hourly.scheduler()
    due = to_micros(datetime(2026, 11, 30, 23, tzinfo=UTC))
    assert await scheduler.fire_due() == due
    assert await hourly.fired() == []

    hourly.clock.moment = due + 7_780
    assert await scheduler.fire_due() == due + 3_600_000_000
    (row,) = await hourly.fired()
    # As the reference named the run of this trigger and time (its recording `trigger-fired-run`).
    assert row.id.run == "r4ba8159fdfd033a5"
    assert row.run_source == run_definition_pb2.RUN_SOURCE_SCHEDULE_TRIGGER
    assert (row.trigger_name, row.trigger_task_name, row.trigger_revision) == ("hourly", "trigenv.tt", 1)
    assert time_of(row) == "23:00:00"
    found = common_pb2.Inputs.FromString(await hourly.store.get(row.input_uri, limit_bytes=1000))
    values = {literal.name: literal.value.scalar.primitive for literal in found.literals}
    assert values["x"].integer == 5
    assert values["t"].datetime.ToJsonString() == "2026-11-30T23:00:00Z"
    shown = await details(hourly, "hourly", "trigenv.tt")
    assert shown.status.triggered_at.ToMicroseconds() == hourly.clock.now()
    assert shown.id.revision == 1

    assert await scheduler.fire_due() == due + 3_600_000_000
    assert len(await hourly.fired()) == 1


async def test_runs_are_made_by_whoever_deployed_the_trigger(world: World) -> None:
    await deploy_task(world)
    request = deployment(automation=cron("@every 60s"))
    await world.triggers.deploy_trigger(request, headers={"x-subject": "ada"})
    world.clock.advance(seconds=61)
    await world.scheduler().fire_due()
    (row,) = await world.fired()
    assert row.created_by_subject == "ada"
    assert (await details(world)).metadata.deployed_by.user.id.subject == "ada"


async def test_only_active_schedules_fire(world: World) -> None:
    await deploy_task(world)
    every = cron("@every 60s")
    await deploy(world, deployment("off", every, active=False))
    await deploy(world, deployment("none", common_pb2.TriggerAutomationSpec(type=common_pb2.TYPE_NONE)))
    for name in ("paused", "gone", "on"):
        await deploy(world, deployment(name, every))
    await set_active(world, False, "paused")
    await delete(world, "gone")
    world.clock.advance(seconds=60)
    await world.scheduler().fire_due()
    assert [row.trigger_name for row in await world.fired()] == ["on"]


@pytest.mark.parametrize(
    ("policy", "limit", "expected"),
    [
        (CatchupPolicy.LAST, 100, ["05:00"]),
        (CatchupPolicy.ALL, 100, ["01:00", "02:00", "03:00", "04:00", "05:00"]),
        (CatchupPolicy.ALL, 2, ["04:00", "05:00"]),
        (CatchupPolicy.SKIP, 100, []),
    ],
)
async def test_times_that_nobody_saw_are_caught_up_as_configured(
    world: World, policy: CatchupPolicy, limit: int, expected: list[str]
) -> None:
    at(world, "2026-01-01T00:10:00")
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("0 * * * *")))
    at(world, "2026-01-01T05:10:00")
    scheduler = world.scheduler(policy=policy, limit=limit)
    due = await scheduler.fire_due()
    assert due == to_micros(datetime(2026, 1, 1, 6, tzinfo=UTC))
    assert [time for time, _ in await fired(world)] == [f"{time}:00" for time in expected]

    at(world, "2026-01-01T06:00:00")
    await scheduler.fire_due()
    assert (await fired(world))[-1][0] == "06:00:00"


async def test_nothing_from_before_an_activation_is_caught_up(world: World) -> None:
    at(world, "2026-01-01T00:10:00")
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("0 * * * *")))
    await set_active(world, False, "daily")
    at(world, "2026-01-01T05:10:00")
    await set_active(world, True, "daily")
    await world.scheduler(policy=CatchupPolicy.ALL).fire_due()
    assert await fired(world) == []


async def test_a_new_schedule_does_not_fire_times_of_its_own_past(world: World) -> None:
    at(world, "2026-01-01T00:10:00")
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("0 0 1 6 *")))
    at(world, "2026-01-01T05:10:00")
    await deploy(world, deployment(automation=cron("0 * * * *")))
    await world.scheduler(policy=CatchupPolicy.ALL).fire_due()
    assert await fired(world) == []


async def test_a_clock_that_is_set_back_fires_nothing_again(world: World) -> None:
    at(world, "2026-01-01T00:10:00")
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("0 * * * *")))
    scheduler = world.scheduler()
    for time in ("01:00:00", "00:30:00", "01:00:01", "02:00:00", "01:59:00", "02:00:00"):
        at(world, f"2026-01-01T{time}")
        await scheduler.fire_due()
    assert [time for time, _ in await fired(world)] == ["01:00:00", "02:00:00"]


async def test_a_trigger_that_is_deployed_anew_does_not_fire_for_the_same_time(world: World) -> None:
    at(world, "2026-01-01T00:10:00")
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("0 * * * *")))
    at(world, "2026-01-01T01:00:00")
    await world.scheduler().fire_due()
    at(world, "2026-01-01T00:59:00")
    await delete(world, "daily")
    await deploy(world, deployment(automation=cron("0 * * * *")))
    at(world, "2026-01-01T01:00:00")
    due = await world.scheduler().fire_due()
    assert due == to_micros(datetime(2026, 1, 1, 2, tzinfo=UTC))
    assert [time for time, _ in await fired(world)] == ["01:00:00"]


async def test_a_trigger_that_can_not_run_passes_its_time_over_and_keeps_nobody_waiting(world: World) -> None:
    await deploy_task(world)
    lost = run_pb2.OffloadedInputData(uri="/store/uploads/inputs/lost", inputs_hash="h")
    await deploy(world, deployment("broken", cron("@every 60s", kickoff="t"), offloaded=lost))
    await deploy(world, deployment("sound", cron("@every 60s")))
    scheduler = world.scheduler()
    world.clock.advance(seconds=61)
    with capture_logs() as logs:
        await scheduler.fire_due()
    assert [row.trigger_name for row in await world.fired()] == ["sound"]
    (line,) = [line for line in logs if line["log_level"] == "warning"]
    assert "env.hello/broken" in line["trigger"] and "lost" in line["error"]

    await world.store.put(f"{lost.uri}/inputs.pb", inputs(x=5).SerializeToString())
    world.clock.advance(seconds=60)
    await scheduler.fire_due()
    assert [row.trigger_name for row in await world.fired()] == ["broken", "sound", "sound"]


async def test_what_may_pass_is_tried_again_for_the_same_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    at(world, "2026-01-01T00:00:30")
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("0 * * * *"), inputs=inputs(x=5)))
    scheduler = world.scheduler()

    async def full(uri: str, data: bytes) -> None:
        raise Unavailable(f"no room for {uri}: {len(data)} bytes")

    at(world, "2026-01-01T01:00:00")
    with monkeypatch.context() as patched:
        patched.setattr(world.store, "put", full)
        with capture_logs() as logs:
            again = await scheduler.fire_due()
            assert again == world.clock.now() + 1_000_000
            await scheduler.fire_due()
            world.clock.advance(seconds=1)
            again = await scheduler.fire_due()
            assert again == world.clock.now() + 2_000_000
    assert [line["event"] for line in logs] == ["a trigger is tried again later"] * 2
    assert await fired(world) == []

    world.clock.advance(seconds=2)
    await scheduler.fire_due()
    assert await fired(world) == [("01:00:00", "daily")]
    assert await scheduler.fire_due() == to_micros(datetime(2026, 1, 1, 2, tzinfo=UTC))


async def test_a_trigger_that_is_deleted_while_it_waits_for_another_try_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("@every 60s"), inputs=inputs(x=5)))
    scheduler = world.scheduler()

    async def full(uri: str, data: bytes) -> None:
        raise Unavailable(f"no room for {uri}: {len(data)} bytes")

    world.clock.advance(seconds=60)
    with monkeypatch.context() as patched:
        patched.setattr(world.store, "put", full)
        assert await scheduler.fire_due() is not None
    await delete(world, "daily")
    world.clock.advance(seconds=60)
    assert await scheduler.fire_due() is None


async def test_more_triggers_than_a_page_are_all_fired(world: World) -> None:
    await deploy_task(world)
    await asyncio.gather(*(deploy(world, deployment(f"t{number}", cron("@every 60s"))) for number in range(205)))
    world.clock.advance(seconds=60)
    await world.scheduler().fire_due()
    assert len({row.trigger_name for row in await world.fired()}) == 205


async def test_runs_are_started_no_faster_than_configured(world: World) -> None:
    await deploy_task(world)
    for number in range(6):
        await deploy(world, deployment(f"t{number}", cron("@every 60s")))
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    world.clock.advance(seconds=60)
    await world.scheduler(pace=Pace(2.0, 3, time=lambda: 0.0, sleep=sleep)).fire_due()
    assert len(await world.fired()) == 6
    assert sorted(slept) == [0.5, 1.0, 1.5]


async def test_a_change_wakes_the_scheduler(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment("late", cron("@every 1h")))
    with world.hub.subscribe(topics.ALL_RUNS) as runs:
        running = asyncio.create_task(world.scheduler().run())
        await asyncio.sleep(0)
        assert world.hub.subscribers(topics.TRIGGERS) == 1
        # It sleeps for half a minute by the machine's clock, which is not the one that tells the time here.
        world.clock.advance(seconds=3600)
        await deploy(world, deployment("new"))
        async with asyncio.timeout(DEADLINE_SECONDS):
            await runs.wait()
        running.cancel()
        await asyncio.wait([running])
    assert [row.trigger_name for row in await world.fired()] == ["late"]
    assert world.hub.subscribers(topics.TRIGGERS) == 0


async def test_the_scheduler_wakes_by_itself_when_something_is_due(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment("soon", cron("@every 1s")))
    world.clock.advance(seconds=0.95)

    start = monotonic()
    moving = SystemClock(wall=lambda: world.clock.now() + int((monotonic() - start) * 1_000_000))
    scheduler = world.scheduler(clock=moving)
    with world.hub.subscribe(topics.ALL_RUNS) as runs:
        running = asyncio.create_task(scheduler.run())
        async with asyncio.timeout(DEADLINE_SECONDS):
            await runs.wait()
        running.cancel()
        await asyncio.wait([running])
    assert [row.trigger_name for row in await world.fired()][:1] == ["soon"]


async def test_a_database_that_cannot_be_read_does_not_end_the_scheduler(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await deploy_task(world)
    await deploy(world, deployment("late", cron("@every 1h")))
    scheduler = world.scheduler()
    failed = asyncio.Event()

    async def broken(operation: object) -> object:
        failed.set()
        raise Unavailable(f"no database for {operation}")

    with world.hub.subscribe(topics.ALL_RUNS) as runs, monkeypatch.context() as patched:
        patched.setattr(world.database, "read", broken)
        running = asyncio.create_task(scheduler.run())
        async with asyncio.timeout(DEADLINE_SECONDS):
            await failed.wait()
            patched.undo()
            world.clock.advance(seconds=3600)
            await deploy(world, deployment("new"))
            await runs.wait()
        running.cancel()
        await asyncio.wait([running])
    assert [row.trigger_name for row in await world.fired()] == ["late"]


async def test_the_runs_of_a_trigger_name_the_revision_that_made_them(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment(automation=cron("@every 60s")))
    world.clock.advance(seconds=60)
    await world.scheduler().fire_due()
    await deploy(world, deployment(automation=cron("@every 60s"), inputs=inputs(x=1)))
    world.clock.advance(seconds=60)
    await world.scheduler().fire_due()
    assert sorted(row.trigger_revision for row in await world.fired()) == [1, 2]
