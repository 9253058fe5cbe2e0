"""The three timeouts of a task, on a machine that may be suspended and a server that may be down."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from flyteidl2.core import execution_pb2

from flyte_binary.domain.phases import Phase
from tests.flows.tasks import task
from tests.flows.world import RUN, World, world_in

MINUTE = timedelta(minutes=1)


def code_of(body: bytes | None) -> str:
    return execution_pb2.ExecutionError.FromString(body or b"").code


async def test_an_attempt_that_runs_too_long_is_stopped_and_timed_out(world: World) -> None:
    root = await world.create(task(max_runtime=MINUTE))
    process = await world.running(root)
    await world.advance(59)
    before = (await world.row(root)).phase
    await world.advance(1)

    row = await world.phase(root, Phase.TIMED_OUT)
    await world.idle()

    assert before == Phase.RUNNING
    assert code_of(row.error) == "MAX_RUNTIME_EXCEEDED"
    assert process.stops == 1 and not process.live


async def test_max_runtime_counts_each_attempt_from_its_own_start_and_uses_a_retry(world: World) -> None:
    root = await world.create(task(max_runtime=MINUTE, retries=1))
    await world.running(root)
    await world.advance(61)
    second = await world.running(root, attempt=2)
    await world.advance(59)
    second.succeed()

    row = await world.phase(root, Phase.SUCCEEDED)

    assert row.user_failures == 1
    timed_out = [event for event in await world.events(root) if event.phase == Phase.TIMED_OUT]
    assert [(event.attempt, event.error_info.code) for event in timed_out] == [(1, "MAX_RUNTIME_EXCEEDED")]


async def test_the_next_attempt_is_not_started_beside_the_process_of_the_last_one(world: World) -> None:
    root = await world.create(task(max_runtime=MINUTE, retries=1))
    first = await world.running(root)
    first.obeys_stop = False
    await world.advance(61)
    beside = len(world.backend.started)
    first.exit(-9)
    await world.running(root, attempt=2)

    assert beside == 1


async def test_an_action_that_is_not_launched_in_time_is_timed_out(tmp_path: Path) -> None:
    async with world_in(tmp_path, cores=1) as world:
        await world.running(await world.create())
        other = type(RUN)(RUN.project, RUN.domain, "r2")
        root = await world.create(task(queued_timeout=MINUTE), run=other)
        await world.advance(59)
        before = (await world.row(root)).phase
        await world.advance(1)

        row = await world.phase(root, Phase.TIMED_OUT)

        assert before == Phase.QUEUED
        assert code_of(row.error) == "QUEUED_TIMEOUT_EXCEEDED"
        assert not world.server.admission.is_asking()


async def test_the_deadline_covers_all_attempts_and_is_final(world: World) -> None:
    root = await world.create(task(deadline=MINUTE, retries=9))
    (await world.running(root)).fail()
    second = await world.running(root, attempt=2)
    await world.advance(60)

    row = await world.phase(root, Phase.TIMED_OUT)

    assert (code_of(row.error), row.attempts) == ("DEADLINE_EXCEEDED", 2)
    assert second.stops == 1


async def test_the_back_off_of_a_retry_is_not_time_in_the_queue(world: World) -> None:
    root = await world.create(task(retries=1, backoff=timedelta(minutes=10), queued_timeout=MINUTE))
    (await world.running(root)).fail()
    await world.idle()
    await world.advance(600)

    await world.running(root, attempt=2)


async def test_a_suspended_machine_uses_up_no_time_limit(world: World) -> None:
    root = await world.create(task(max_runtime=MINUTE, deadline=MINUTE))
    await world.running(root)
    world.clock.sleep(seconds=8 * 3600)
    await world.look_again()
    slept = (await world.row(root)).phase
    await world.advance(60)

    assert slept == Phase.RUNNING
    await world.phase(root, Phase.TIMED_OUT)


async def test_an_attempt_that_ended_in_time_while_the_server_was_down_is_not_timed_out(world: World) -> None:
    root = await world.create(task(max_runtime=MINUTE, deadline=MINUTE))
    process = await world.running(root)
    await world.server.kill()
    world.clock.advance(seconds=10)
    process.succeed()
    world.clock.advance(seconds=3600)
    await world.restart()

    row = await world.phase(root, Phase.SUCCEEDED)

    assert row.ended_at == row.created_at + 10_000_000


async def test_the_time_that_the_server_was_down_is_no_time_in_the_queue_of_a_retry(world: World) -> None:
    root = await world.create(task(retries=1, queued_timeout=MINUTE))
    process = await world.running(root)
    await world.server.kill()
    process.fail()
    world.clock.advance(seconds=3600)
    await world.restart()

    await world.running(root, attempt=2)


async def test_a_timeout_that_comes_too_late_does_not_change_what_has_ended(world: World) -> None:
    root = await world.create(task(max_runtime=MINUTE))
    await world.running(root)
    await world.aborter.abort(root, "enough", None)
    await world.advance(3600)

    assert (await world.row(root)).phase == Phase.ABORTED
