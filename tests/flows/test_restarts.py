"""The server dies at any point, and the next one ends what it began: the same way, launched once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flyte_binary.domain.phases import Phase
from tests.fakes.backend import Process
from tests.fakes.faults import ANY, Mode
from tests.flows.tasks import task
from tests.flows.world import RUN, World, world_in


def says_hello(process: Process) -> None:
    process.print("hello")
    process.succeed()


async def points_of_a_life(folder: Path) -> list[str]:
    """Everything that one attempt has the server do outside itself, in its order."""
    await asyncio.to_thread(folder.mkdir)
    async with world_in(folder) as world:
        world.backend.script = says_hello
        await world.phase(await world.create(), Phase.SUCCEEDED)
        await world.idle()
    calls = world.faults.calls
    assert {"write", "launch", "observe", "stat", "put", "forget"} <= set(calls)
    return calls


async def has_lived_well(world: World) -> None:
    row = await world.phase(RUN.root(), Phase.SUCCEEDED)
    await world.idle()

    assert (row.attempts, row.output_uri, row.system_failures) == (1, "/store/r1/a0/1", 0)
    assert len(world.backend.started) == 1
    (attempt,) = await world.attempts(RUN.root())
    assert attempt.archived_at is not None and attempt.log_uri in world.store.objects
    assert world.server.admission.holders() == []
    assert [event.phase for event in await world.events(RUN.root())] == [
        Phase.QUEUED,
        Phase.INITIALIZING,
        Phase.RUNNING,
        Phase.SUCCEEDED,
    ]


@pytest.mark.parametrize("mode", [Mode.HANGS, Mode.HANGS_AFTER], ids=["before", "after"])
async def test_a_crash_at_any_point_ends_the_same_and_launches_once(tmp_path: Path, mode: Mode) -> None:
    calls = await points_of_a_life(tmp_path / "whole")
    for point in range(1, len(calls) + 1):
        folder = tmp_path / f"{point}-{calls[point - 1]}"
        await asyncio.to_thread(folder.mkdir)
        async with world_in(folder) as world:
            world.backend.script = says_hello
            world.faults.plan(ANY, mode, nth=point)
            await world.create()
            async with asyncio.timeout(10):
                await world.faults.reached.wait()
            await world.restart()

            await has_lived_well(world)
            assert world.backend.processes == {}, folder.name


@pytest.mark.parametrize("mode", [Mode.FAILS, Mode.FAILS_AFTER], ids=["fails", "fails-after"])
async def test_a_failure_at_any_point_is_tried_again_and_ends_the_same(tmp_path: Path, mode: Mode) -> None:
    calls = await points_of_a_life(tmp_path / "whole")
    for point in range(1, len(calls) + 1):
        folder = tmp_path / f"{point}-{calls[point - 1]}"
        await asyncio.to_thread(folder.mkdir)
        async with world_in(folder) as world:
            world.backend.script = says_hello
            world.faults.plan(ANY, mode, nth=point)
            await world.create()
            await world.idle()
            for _ in range(3):
                await world.look_again()

            await has_lived_well(world)


async def test_a_process_that_runs_is_adopted_by_the_next_server(world: World) -> None:
    root = await world.create()
    process = await world.running(root)
    await world.restart()
    await world.idle()
    held = [request.action for request in world.server.admission.holders()]
    process.succeed()
    await world.phase(root, Phase.SUCCEEDED)

    assert held == [root]
    assert len(world.backend.started) == 1


async def test_a_stop_of_the_server_finishes_the_pass_that_is_under_way(world: World) -> None:
    root = await world.create()
    await world.running(root)
    await world.idle()
    holding = asyncio.Event()
    original = world.backend._observe

    async def slow(attempt, nonce):  # type: ignore[no-untyped-def]  # same signature
        await holding.wait()
        return await original(attempt, nonce)

    world.backend._observe = slow  # pyright: ignore[reportAttributeAccessIssue]
    world.backend.processes[root.attempt(1)].succeed()
    for _ in range(20):
        await asyncio.sleep(0)
    stopping = asyncio.create_task(world.server.stop())
    await asyncio.sleep(0)
    holding.set()
    await stopping

    assert (await world.row(root)).phase == Phase.SUCCEEDED


async def test_what_was_owed_to_an_aborted_action_is_done_after_a_restart(world: World) -> None:
    root = await world.create()
    process = await world.running(root)
    await world.server.kill()
    await world.aborter.abort(root, "while nobody was there", None)
    still = process.live
    await world.restart()
    await world.idle()

    assert still and not process.live
    (attempt,) = await world.attempts(root)
    assert attempt.archived_at is not None
    assert world.backend.processes == {}


async def test_a_scan_stops_a_live_attempt_whose_action_has_ended_and_is_settled(world: World) -> None:
    """The launcher was slow: the process came to life after the server had given up on it and was done."""
    root = await world.create()
    process = await world.running(root)
    spec = process.spec
    process.vanish()
    await world.aborter.abort(root, "enough", None)
    await world.idle()
    (attempt,) = await world.attempts(root)
    assert attempt.archived_at is not None and world.backend.processes == {}
    late = world.backend.processes[spec.id] = Process(spec, world.backend)
    late.run()

    await world.idle()
    await world.look_again()

    assert not late.live
    await world.restart()
    await world.idle()
    assert world.backend.processes == {}


async def test_a_scan_ends_and_removes_what_no_row_knows_of(world: World) -> None:
    root = await world.create()
    known = await world.running(root)
    unknown = Process(
        type(known.spec)(id=RUN.action("nobody").attempt(1), nonce="n", argv=("a0",), env={}, image="", bundle_uri=""),
        world.backend,
    )
    world.backend.processes[unknown.spec.id] = unknown
    unknown.run()
    await world.restart()
    await world.idle()
    await world.restart()
    await world.idle()

    assert not unknown.live and known.live
    assert list(world.backend.processes) == [known.spec.id]


async def test_the_children_of_a_killed_server_all_end_and_none_runs_twice(world: World) -> None:
    root = await world.create()
    await world.running(root)
    world.backend.script = lambda process: process.succeed()
    world.faults.plan(ANY, Mode.HANGS, nth=60)
    children = [await world.enqueue(f"c{number}") for number in range(30)]
    await world.faults.reached.wait()
    await world.restart()
    for child in children:
        await world.phase(child, Phase.SUCCEEDED)

    started = [spec.id.action for spec in world.backend.started]
    assert len(started) == len(set(started)) == 31


async def test_a_store_that_takes_no_log_holds_up_neither_the_next_attempt_nor_the_share(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        world.backend.script = says_hello
        for nth in range(1, 4):
            world.faults.plan("put", Mode.FAILS, nth=nth)
        root = await world.create()
        await world.phase(root, Phase.SUCCEEDED)
        await world.idle()
        free = world.server.admission.holders()
        other = await world.create(task("env.other"), run=type(RUN)(RUN.project, RUN.domain, "r2"))
        await world.phase(other, Phase.SUCCEEDED)
        owed = [attempt.archived_at for attempt in await world.attempts(root)]
        for _ in range(4):
            await world.look_again()

        assert free == []
        assert owed == [None]
        assert all([attempt.archived_at for attempt in await world.attempts(root)])
