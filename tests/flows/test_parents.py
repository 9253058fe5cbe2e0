"""The next attempt of a parent: what failed below the last one is asked for again, the rest is taken over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from flyte_binary.domain.errors import AlreadyExists
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from tests.flows.tasks import task
from tests.flows.world import RUN, World


async def a_parent(world: World, *, retries: int = 1) -> ActionId:
    root = await world.create(task("env.main", retries=retries))
    await world.running(root)
    return root


async def next_attempt(world: World, root: ActionId, attempt: int = 2) -> None:
    world.backend.processes[root.attempt(attempt - 1)].fail()
    await world.running(root, attempt)
    await world.idle()


async def told_of(world: World, root: ActionId) -> dict[str, int]:
    """The snapshot that the runtime of the parent gets."""
    async with world.watching(root) as watched:
        return {update.action_id.name: update.phase for update in watched.snapshot or []}


async def test_failed_children_are_left_out_of_the_next_snapshot_and_succeeded_ones_are_replayed(world: World) -> None:
    root = await a_parent(world)
    good, bad, late, gone = [await world.enqueue(name) for name in ("good", "bad", "late", "gone")]
    (await world.running(good)).succeed()
    (await world.running(bad)).fail()
    await world.running(late)
    await world.running(gone)
    await world.aborter.abort(gone, "cancelled by its parent", None)
    await world.phase(good, Phase.SUCCEEDED)
    await world.phase(bad, Phase.FAILED)

    await next_attempt(world, root)

    assert await told_of(world, root) == {"a0": Phase.RUNNING, "good": Phase.SUCCEEDED, "late": Phase.RUNNING}


async def test_within_an_attempt_a_failed_child_is_told_and_stays_failed(world: World) -> None:
    root = await a_parent(world)
    bad = await world.enqueue("bad")
    (await world.running(bad)).fail()
    await world.phase(bad, Phase.FAILED)

    assert (await told_of(world, root))["bad"] == Phase.FAILED
    with pytest.raises(AlreadyExists):
        await world.enqueue("bad")


async def test_a_superseded_child_that_is_asked_for_again_runs_as_a_new_attempt_with_a_fresh_budget(
    world: World,
) -> None:
    root = await a_parent(world)
    child = await world.enqueue("bad", task(retries=1))
    for attempt in (1, 2):
        (await world.running(child, attempt)).fail()
    await world.phase(child, Phase.FAILED)
    await next_attempt(world, root)

    await world.enqueue("bad", task(retries=1))
    (await world.running(child, attempt=3)).fail()
    (await world.running(child, attempt=4)).succeed()
    row = await world.phase(child, Phase.SUCCEEDED)

    assert (row.attempts, row.user_failures, row.error, row.output_uri) == (4, 1, None, "/store/r1/bad/4")
    assert {event.attempt for event in await world.events(child)} == {1, 2, 3, 4}


async def test_a_running_child_is_adopted_and_its_repetition_already_exists(world: World) -> None:
    root = await a_parent(world)
    child = await world.enqueue("c1")
    process = await world.running(child)
    await next_attempt(world, root)

    with pytest.raises(AlreadyExists):
        await world.enqueue("c1")
    process.succeed()
    await world.phase(child, Phase.SUCCEEDED)

    assert len([spec for spec in world.backend.started if spec.id.action == child]) == 1


async def test_the_reopened_child_is_told_to_the_parent_that_watches(world: World) -> None:
    root = await a_parent(world)
    bad = await world.enqueue("bad")
    (await world.running(bad)).fail()
    await world.phase(bad, Phase.FAILED)
    await next_attempt(world, root)

    async with world.watching(root) as watched:
        await world.enqueue("bad")
        (await world.running(bad, attempt=2)).succeed()
        last = await watched.phase_of("bad", Phase.SUCCEEDED)

    assert last.output_uri == "/store/r1/bad/2"
    assert Phase.FAILED not in [update.phase for update in watched.of("bad")]


async def test_of_failed_traces_only_the_recoverable_ones_are_run_again(world: World) -> None:
    root = await a_parent(world)
    await world.trace("t-good")
    await world.trace("t-again", failed=True)
    await world.trace("t-final", failed=True, recoverable=False)

    await next_attempt(world, root)

    told = await told_of(world, root)
    assert told == {"a0": Phase.RUNNING, "t-good": Phase.SUCCEEDED, "t-final": Phase.FAILED}
    await world.trace("t-again")
    row = await world.row(RUN.action("t-again"))
    assert (row.phase, row.error, row.output_uri) == (Phase.SUCCEEDED, None, "/store/r1/t-again/outputs.pb")


async def test_a_later_attempt_of_a_child_starts_with_a_clean_family_too(world: World) -> None:
    root = await a_parent(world)
    child = await world.enqueue("c1", task(retries=1))
    first = await world.running(child)
    grandchild = await world.enqueue("g1", parent="c1")
    (await world.running(grandchild)).fail()
    await world.phase(grandchild, Phase.FAILED)
    first.fail()
    await world.running(child, attempt=2)
    await world.enqueue("g1", parent="c1")
    await world.running(grandchild, attempt=2)

    assert (await world.row(root)).attempts == 1


async def test_a_condition_that_timed_out_below_the_last_attempt_has_its_whole_time_again(world: World) -> None:
    root = await a_parent(world)
    condition = await world.condition("ok", timeout_seconds=60)
    await world.advance(60)
    await world.phase(condition, Phase.TIMED_OUT)
    await next_attempt(world, root)

    await world.condition("ok", timeout_seconds=60)
    await world.advance(59)
    almost = (await world.row(condition)).phase
    await world.advance(1)

    assert almost == Phase.PAUSED
    await world.phase(condition, Phase.TIMED_OUT)


async def test_a_child_that_missed_its_deadline_below_the_last_attempt_has_its_whole_time_again(world: World) -> None:
    root = await a_parent(world)
    limited = task(deadline=timedelta(minutes=1), retries=3)
    child = await world.enqueue("c1", limited)
    await world.running(child)
    await world.advance(60)
    await world.phase(child, Phase.TIMED_OUT)
    await next_attempt(world, root)

    await world.enqueue("c1", limited)
    (await world.running(child, attempt=2)).fail()
    await world.running(child, attempt=3)
    await world.advance(59)
    almost = (await world.row(child)).phase
    await world.advance(1)

    assert almost == Phase.RUNNING
    await world.phase(child, Phase.TIMED_OUT)


async def test_a_reopened_child_does_not_run_beside_its_last_process(world: World) -> None:
    root = await a_parent(world)
    child = await world.enqueue("c1")
    process = await world.running(child)
    process.obeys_stop = False
    await world.aborter.abort(child, "cancelled", None)
    await next_attempt(world, root)
    await world.enqueue("c1")
    await world.idle()
    beside = len([spec for spec in world.backend.started if spec.id.action == child])
    process.exit(-9)
    await world.running(child, attempt=2)

    assert beside == 1
