"""What the runtime of a parent is told: all that counts first, one sentinel, then every later state."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from flyteidl2.core import execution_pb2

from flyte_binary.actions import updates as updates_module
from flyte_binary.domain import topics
from flyte_binary.domain.errors import NotFound
from flyte_binary.domain.phases import Phase
from tests.flows.tasks import task
from tests.flows.world import DEADLINE_SECONDS, RUN, World


async def test_the_snapshot_has_the_parent_and_its_children_and_nobody_elses(world: World) -> None:
    root = await world.create()
    await world.running(root)
    await world.enqueue("c1")
    await world.trace("t1")
    await world.condition("ok")
    await world.enqueue("g1", parent="c1")

    async with world.watching(root) as watched:
        assert sorted(update.action_id.name for update in watched.snapshot or []) == ["a0", "c1", "ok", "t1"]
        own = watched.of("a0")[0]

    assert (own.action_id.run.name, own.action_id.run.project, own.action_id.run.org) == ("r1", "flytesnacks", "")


async def test_the_watch_of_an_action_that_does_not_exist_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        async with aclosing(world.updates.watch(RUN.action("nobody"))) as updates:
            await anext(updates)


async def test_a_child_of_which_nothing_changes_is_told_once(world: World) -> None:
    root = await world.create()
    await world.running(root)
    await world.trace("t1")
    async with world.watching(root) as watched:
        await world.trace("t2")
        child = await world.enqueue("c1")
        (await world.running(child)).succeed()
        await watched.phase_of("c1", Phase.SUCCEEDED)

        assert len(watched.of("t1")) == 1
        assert len(watched.of("t2")) == 1
        phases = [update.phase for update in watched.of("c1")]
        assert phases == sorted(set(phases))


async def test_changes_that_come_while_the_watcher_is_busy_are_told_as_their_last_state(world: World) -> None:
    root = await world.create()
    await world.running(root)
    async with aclosing(world.updates.watch(root)) as updates:
        while await anext(updates) is not None:
            pass
        children = [await world.enqueue(name) for name in ("c1", "c2")]
        for child in children:
            (await world.running(child)).succeed()
            await world.phase(child, Phase.SUCCEEDED)
        told = []
        async with asyncio.timeout(DEADLINE_SECONDS):
            for _ in children:
                told.append(await anext(updates))

    assert sorted((update.action_id.name, update.phase) for update in told if update is not None) == [
        ("c1", Phase.SUCCEEDED),
        ("c2", Phase.SUCCEEDED),
    ]


async def test_the_output_uri_of_a_task_is_the_folder_of_its_current_attempt_in_every_phase(world: World) -> None:
    root = await world.create()
    await world.running(root)
    async with world.watching(root) as watched:
        child = await world.enqueue("c1", task(retries=1))
        (await world.running(child)).fail()
        (await world.running(child, attempt=2)).succeed()
        await watched.phase_of("c1", Phase.SUCCEEDED)

        uris = [update.output_uri for update in watched.of("c1")]
        assert uris[0] == "/store/r1/c1/1"
        assert uris[-1] == "/store/r1/c1/2"
        assert set(uris) == {"/store/r1/c1/1", "/store/r1/c1/2"}


async def test_the_output_uri_of_a_trace_is_the_file_and_a_condition_has_none(world: World) -> None:
    root = await world.create()
    await world.running(root)
    async with world.watching(root) as watched:
        await world.trace("t1")
        await world.condition("ok")
        trace = await watched.phase_of("t1", Phase.SUCCEEDED)
        condition = await watched.phase_of("ok", Phase.PAUSED)

    assert (trace.output_uri, condition.output_uri) == ("/store/r1/t1/outputs.pb", "")


async def test_a_failed_trace_brings_the_error_that_lies_beside_its_inputs(world: World) -> None:
    root = await world.create()
    await world.running(root)
    async with world.watching(root) as watched:
        await world.trace("t1", failed=True, recoverable=False)
        update = await watched.phase_of("t1", Phase.FAILED)

    assert (update.error.code, update.error.message) == ("ValueError", "in a trace")
    assert update.error.recoverability == execution_pb2.ContainerError.NON_RECOVERABLE
    assert update.error.kind == execution_pb2.ExecutionError.USER


async def test_a_failure_is_never_told_without_an_error(world: World) -> None:
    root = await world.create()
    await world.running(root)
    async with world.watching(root) as watched:
        child = await world.enqueue("c1")
        row = await world.row(child)
        await world.server.stop()

        def fail_without_a_reason(tx):  # type: ignore[no-untyped-def]  # a transaction
            assert tx.actions.advance(child, Phase.FAILED, at=world.clock.now())
            tx.changed_action(child, row.parent)

        await world.database.write(fail_without_a_reason)
        update = await watched.phase_of("c1", Phase.FAILED)

    assert update.HasField("error") and update.error.message


async def test_timeouts_and_aborts_say_why(world: World) -> None:
    root = await world.create()
    await world.running(root)
    async with world.watching(root) as watched:
        await world.aborter.abort(await world.enqueue("c1"), "no longer wanted", None)
        await world.condition("ok", timeout_seconds=1)
        await world.advance(2)
        aborted = await watched.phase_of("c1", Phase.ABORTED)
        timed_out = await watched.phase_of("ok", Phase.TIMED_OUT)

    assert aborted.error.message == "no longer wanted"
    assert timed_out.error.code == "ConditionTimedOut"


async def test_many_watchers_of_a_parent_all_see_every_last_state(world: World) -> None:
    root = await world.create()
    await world.running(root)
    world.backend.script = lambda process: process.succeed()
    async with world.watching(root) as first, world.watching(root) as second:
        for number in range(40):
            await world.enqueue(f"c{number}")
        for watched in (first, second):
            for number in range(40):
                await watched.phase_of(f"c{number}", Phase.SUCCEEDED)


async def test_a_silent_stream_shows_that_it_lives(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates_module, "KEEP_ALIVE_SECONDS", 0.01)
    root = await world.create()
    await world.running(root)
    async with aclosing(world.updates.watch(root)) as updates, asyncio.timeout(DEADLINE_SECONDS):
        told = [await anext(updates) for _ in range(4)]

    assert [update is None for update in told] == [False, True, True, True]


async def test_a_watch_that_is_closed_gives_its_subscription_back(world: World) -> None:
    root = await world.create()
    await world.running(root)
    before = dict(world.hub._subscriptions)
    async with world.watching(root):
        assert len(world.hub._subscriptions) == len(before) + 1

    assert dict(world.hub._subscriptions).keys() == before.keys()


@pytest.mark.parametrize("turns", range(6))
async def test_a_watch_ends_although_something_changes_at_the_same_moment(world: World, turns: int) -> None:
    """Or a stop waits for it until its patience ends, and the stream of a client that left stays for good."""
    root = await world.create()
    await world.running(root)
    async with aclosing(world.updates.watch(root)) as updates, asyncio.timeout(DEADLINE_SECONDS):
        while await anext(updates) is not None:
            pass
        following = asyncio.create_task(anext(updates))
        await asyncio.sleep(0.01)

        world.hub.publish([(topics.children(root.run_id, root.name), ("unknown",))])
        for _ in range(turns):
            await asyncio.sleep(0)
        following.cancel()

        done, _ = await asyncio.wait([following], timeout=1)
        assert done
        assert following.cancelled()
