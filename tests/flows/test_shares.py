"""The shares of the machine: parents that wait hold none, limits of a run hold, and no standstill lasts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from flyteidl2.common import run_pb2
from flyteidl2.task import run_pb2 as task_run_pb2

from flyte_binary.domain.ids import RunId
from flyte_binary.domain.phases import Phase
from flyte_binary.executor.standstill import IDLE_SECONDS, SAMPLE_SECONDS
from tests.fakes.backend import Process
from tests.flows.tasks import task
from tests.flows.world import RUN, World, world_in


async def test_recursion_of_depth_30_on_2_cores_finishes(tmp_path: Path) -> None:
    depth = 30
    async with world_in(tmp_path, cores=2) as world:
        await world.create()
        await world.running(RUN.root())
        names = ["a0"]
        for level in range(1, depth + 1):
            child = await world.enqueue(f"n{level}", parent=names[-1])
            await world.running(child)
            names.append(child.name)
        for name in reversed(names):
            world.backend.processes[RUN.action(name).attempt(1)].succeed()
            await world.phase(RUN.action(name), Phase.SUCCEEDED)

        assert len(world.backend.started) == depth + 1


async def test_a_parent_that_waits_for_its_children_lets_them_have_its_core(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        await world.running(await world.create())
        await world.running(await world.enqueue("c1"))
        await world.enqueue("c2")
        await world.idle()

        assert (await world.row(RUN.action("c2"))).phase == Phase.QUEUED
        world.backend.processes[RUN.action("c1").attempt(1)].succeed()
        await world.running(RUN.action("c2"))


async def test_a_parent_whose_condition_is_open_holds_no_core(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        await world.running(await world.create())
        other = await world.create(run=RunId(RUN.project, RUN.domain, "r2"))
        await world.idle()
        before = (await world.row(other)).phase
        await world.condition("ok")
        await world.running(other)

        assert before == Phase.QUEUED


async def test_a_run_that_waits_for_a_run_that_it_started_holds_no_core(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        await world.running(await world.create())
        spec = task_run_pb2.RunSpec()
        spec.relation.relation_type = run_pb2.RELATION_TYPE_SPAWN
        spec.relation.related_to.CopyFrom(RUN.to_proto())
        spawned = await world.create(run=RunId(RUN.project, RUN.domain, "r2"), run_spec=spec)
        (await world.running(spawned)).succeed()
        await world.phase(spawned, Phase.SUCCEEDED)
        await world.idle()

        assert world.server.admission.active() == [RUN.root()]


async def test_the_next_attempt_of_a_parent_does_not_take_the_core_that_its_children_wait_for(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        root = await world.create(task("env.main", retries=1))
        first = await world.running(root)
        child = await world.running(await world.enqueue("c1"))
        first.fail()
        await world.idle()
        await world.enqueue("c2")
        await world.idle()
        child.succeed()
        await world.running(root, attempt=2)

        await world.running(RUN.action("c2"))


async def test_who_waits_for_whom_is_known_after_a_restart(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        await world.running(await world.create())
        await world.running(await world.enqueue("c1"))
        await world.enqueue("c2")
        await world.restart()
        await world.idle()
        active = world.server.admission.active()
        world.backend.processes[RUN.action("c1").attempt(1)].succeed()
        await world.running(RUN.action("c2"))

        assert active == [RUN.action("c1")]


async def test_no_more_actions_of_a_run_are_active_than_it_allows(world: World) -> None:
    await world.running(await world.create(run_spec=task_run_pb2.RunSpec(max_action_concurrency=2)))
    for number in range(5):
        await world.enqueue(f"c{number}")
    await world.idle()
    together = [process for process in world.backend.processes.values() if not process.spec.id.action.is_root]
    most = len(together)
    for number in range(5):
        (await world.running(RUN.action(f"c{number}"))).succeed()
        await world.phase(RUN.action(f"c{number}"), Phase.SUCCEEDED)

    assert most == 2


async def test_an_action_that_asks_for_more_than_the_machine_has_runs_alone_and_its_log_says_so(world: World) -> None:
    root = await world.create(task(cores="64", memory="512Gi"))
    await world.running(root)

    (spec,) = world.backend.started
    assert spec.cores == 4
    assert any("asks for 64 cores" in notice for notice in spec.notices)
    assert any("512 GiB" in notice for notice in spec.notices)


async def test_while_the_door_is_closed_nothing_starts_and_what_runs_goes_on(world: World) -> None:
    root = await world.create()
    process = await world.running(root)
    world.server.executor.admission_is_open(False)
    child = await world.enqueue("c1")
    await world.idle()
    waiting = (await world.row(child)).phase
    world.server.executor.admission_is_open(True)
    await world.running(child)

    assert waiting == Phase.QUEUED
    assert process.live


def uses(process: Process, cpu_seconds: float) -> None:
    process.state = replace(process.state, cpu_seconds=cpu_seconds)


async def test_a_standstill_admits_one_more_after_a_while(tmp_path: Path) -> None:
    """The holder polls something that nobody can see from outside."""
    async with world_in(tmp_path, cores=1) as world:
        holder = await world.running(await world.create())
        waiting = [RunId(RUN.project, RUN.domain, name).root() for name in ("r2", "r3")]
        for action in waiting:
            await world.create(run=action.run_id)
        await world.idle()
        uses(holder, 1.0)
        now = 1000.0
        admitted_at = None
        while admitted_at is None and now < 1010:
            await world.server.standstill.look(now)
            await world.idle()
            if (await world.row(waiting[0])).phase == Phase.RUNNING:
                admitted_at = now
            now += SAMPLE_SECONDS

        assert admitted_at is not None
        assert IDLE_SECONDS <= admitted_at - 1000.0 <= IDLE_SECONDS + 2 * SAMPLE_SECONDS
        assert (await world.row(waiting[1])).phase == Phase.QUEUED


async def test_nobody_is_admitted_beyond_the_limits_while_somebody_computes_or_cannot_be_seen(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        holder = await world.running(await world.create())
        await world.create(run=RunId(RUN.project, RUN.domain, "r2"))
        await world.idle()
        for sample in range(20):
            uses(holder, 0.2 * sample)
            await world.server.standstill.look(1000.0 + sample * SAMPLE_SECONDS)
        holder.state = replace(holder.state, cpu_seconds=None)
        for sample in range(20, 40):
            await world.server.standstill.look(1000.0 + sample * SAMPLE_SECONDS)
        await world.idle()

        assert len(world.backend.started) == 1
