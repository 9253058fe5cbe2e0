"""Abort of a run and of one action: the mark at once, the processes as soon as they obey."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flyte_binary.domain.errors import Aborted, NotFound
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from tests.fakes.faults import Mode
from tests.flows.tasks import task
from tests.flows.world import RUN, World, world_in


async def a_family(world: World) -> tuple[ActionId, ActionId, ActionId, ActionId]:
    """Root, a child, the child's child, and a sibling of the child; all run."""
    root = await world.create()
    await world.running(root)
    child = await world.enqueue("c1")
    await world.running(child)
    grandchild = await world.enqueue("g1", parent="c1")
    sibling = await world.enqueue("c2")
    for action in (grandchild, sibling):
        await world.running(action)
    return root, child, grandchild, sibling


async def test_the_abort_of_a_run_ends_everything_in_it(world: World) -> None:
    family = await a_family(world)
    processes = list(world.backend.processes.values())

    await world.aborter.abort(RUN.root(), "changed my mind", b"who")
    rows = [await world.row(action) for action in family]
    await world.idle()

    assert [row.phase for row in rows] == [Phase.ABORTED] * 4
    assert (rows[0].abort_reason, rows[0].aborted_by) == ("changed my mind", b"who")
    assert not any(process.live for process in processes)
    assert world.backend.processes == {}
    assert world.server.admission.holders() == []


async def test_the_abort_of_an_action_ends_what_hangs_below_it_and_nothing_else(world: World) -> None:
    root, child, grandchild, sibling = await a_family(world)

    await world.aborter.abort(child, "enough", None)
    await world.idle()

    phases = [(await world.row(action)).phase for action in (root, child, grandchild, sibling)]
    assert phases == [Phase.RUNNING, Phase.ABORTED, Phase.ABORTED, Phase.RUNNING]


async def test_a_second_abort_changes_nothing(world: World) -> None:
    root = await world.create()
    await world.running(root)
    await world.aborter.abort(root, "first", None)
    before = await world.row(root)
    world.clock.advance(seconds=5)
    await world.aborter.abort(root, "second", None)

    assert await world.row(root) == before


async def test_what_has_ended_already_stays_as_it_ended(world: World) -> None:
    root = await world.create()
    await world.running(root)
    child = await world.enqueue("c1")
    (await world.running(child)).succeed()
    await world.phase(child, Phase.SUCCEEDED)
    await world.aborter.abort(root, "enough", None)

    assert (await world.row(child)).phase == Phase.SUCCEEDED


async def test_the_abort_of_what_does_not_exist_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        await world.aborter.abort(RUN.action("nobody"), "", None)


async def test_an_aborted_action_keeps_its_share_until_its_process_is_gone(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        root = await world.create()
        process = await world.running(root)
        process.obeys_stop = False
        waiting = await world.create(run=type(RUN)(RUN.project, RUN.domain, "r2"))
        await world.aborter.abort(root, "enough", None)
        await world.idle()
        meanwhile = (await world.row(waiting)).phase
        process.exit(-9)
        await world.running(waiting)

        assert meanwhile == Phase.QUEUED
        assert process.stops == 1


async def test_a_process_that_is_being_stopped_keeps_its_share_across_a_restart(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        root = await world.create()
        process = await world.running(root)
        process.obeys_stop = False
        waiting = await world.create(run=type(RUN)(RUN.project, RUN.domain, "r2"))
        await world.aborter.abort(root, "enough", None)
        await world.idle()
        await world.restart()
        await world.idle()
        meanwhile = (await world.row(waiting)).phase
        process.exit(-9)
        await world.running(waiting)

        assert meanwhile == Phase.QUEUED
        assert process.stops >= 2


async def test_nothing_starts_below_an_ending_ancestor(world: World) -> None:
    await a_family(world)
    await world.aborter.abort(RUN.action("c1"), "enough", None)

    for parent in ("c1", "g1"):
        with pytest.raises(Aborted):
            await world.enqueue("late", parent=parent)
    await world.enqueue("elsewhere", parent="c2")


async def test_children_that_are_enqueued_while_their_run_is_aborted_never_start(world: World) -> None:
    """Whoever commits first wins; a child is refused or aborted, and no process of it remains."""
    await world.running(await world.create())

    async def enqueue(name: str) -> bool:
        try:
            await world.enqueue(name)
        except Aborted:
            return False
        return True

    accepted, *_ = await asyncio.gather(
        asyncio.gather(*(enqueue(f"c{number}") for number in range(20))),
        world.aborter.abort(RUN.root(), "enough", None),
        asyncio.gather(*(enqueue(f"d{number}") for number in range(20))),
    )
    await world.idle()

    rows = await world.database.read(lambda tx: tx.actions.children(RUN.root()))
    assert len(rows) >= sum(accepted)
    assert {row.phase for row in rows} <= {Phase.ABORTED}
    assert world.backend.processes == {}


async def test_an_action_that_is_aborted_between_its_admission_and_its_intent_is_not_launched(world: World) -> None:
    world.faults.plan("write", Mode.HANGS, nth=1)
    root = await world.create()
    await world.faults.reached.wait()
    await world.aborter.abort(root, "enough", None)
    await world.restart()
    await world.idle()

    assert world.backend.started == []
    assert world.server.admission.holders() == []


async def test_an_action_that_is_aborted_while_it_waits_for_a_share_gives_its_place_back(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        await world.running(await world.create())
        waiting = await world.create(run=type(RUN)(RUN.project, RUN.domain, "r2"))
        await world.idle()
        assert world.server.admission.is_asking()

        await world.aborter.abort(waiting, "enough", None)
        await world.idle()

        assert not world.server.admission.is_asking()


async def test_an_abort_during_the_back_off_ends_the_retries(world: World) -> None:
    world.backend.script = lambda process: process.vanish()
    root = await world.create(task(retries=3))
    await world.phase(root, Phase.QUEUED)
    await world.idle()
    await world.aborter.abort(root, "enough", None)
    await world.advance(60)

    assert (await world.row(root)).phase == Phase.ABORTED
    assert len(world.backend.started) == 1
