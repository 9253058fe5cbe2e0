"""Whose fault a failure is, and what it costs: errors, kills, losses, restarts of the server's making."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from flyteidl2.core import execution_pb2

from flyte_binary.domain.phases import Phase
from flyte_binary.executor.conclude import Caps
from tests.fakes.backend import Process
from tests.flows.tasks import task
from tests.flows.world import World, world_in

SYSTEM = execution_pb2.ExecutionError.SYSTEM


def error_of(body: bytes | None) -> execution_pb2.ExecutionError:
    assert body is not None
    return execution_pb2.ExecutionError.FromString(body)


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (lambda process: process.exit(3), "ExitCode", "exit code 3"),
        (lambda process: process.exit(-11), "Killed", "SIGSEGV"),
        (lambda process: process.exit(0), "OutputsNotFound", "without writing outputs"),
        (
            lambda process: process.exit(-9, out_of_memory=True, reason="more than 1 GiB"),
            "OOMKilled",
            "more than 1 GiB",
        ),
        (lambda process: process.exit(1, invalid=True, reason="not a tar"), "BadTaskSpecification", "not a tar"),
    ],
)
async def test_a_process_that_dies_is_reported_with_the_reason_and_the_end_of_its_log(
    world: World, end: Callable[[Process], None], code: str, said: str
) -> None:
    def script(process: Process) -> None:
        process.print("last words")
        end(process)

    world.backend.script = script
    root = await world.create()

    error = error_of((await world.phase(root, Phase.FAILED)).error)

    assert error.code == code
    assert said in error.message
    assert ("last words" in error.message) == (code != "BadTaskSpecification")


async def test_a_lost_attempt_is_started_again_without_using_a_retry(world: World) -> None:
    root = await world.create()
    (await world.running(root)).vanish()
    await world.phase(root, Phase.QUEUED)
    await world.advance(1)
    await world.running(root, attempt=2)
    row = await world.row(root)

    assert (row.attempts, row.user_failures, row.infrastructure_failures) == (2, 0, 1)


async def test_losses_are_counted_and_end_in_a_failure(tmp_path: Path) -> None:
    async with world_in(tmp_path, caps=Caps(infrastructure_failures=2)) as world:
        root = await world.create(task(retries=9))
        for attempt in (1, 2, 3):
            (await world.running(root, attempt)).vanish()
            await world.idle()
            await world.advance(60)

        row = await world.phase(root, Phase.FAILED)

        assert (row.attempts, row.infrastructure_failures) == (3, 3)
        assert error_of(row.error).code == "AttemptLost"


async def test_a_system_error_of_a_parent_restarts_it_and_does_not_fail_the_run(world: World) -> None:
    root = await world.create()
    (await world.running(root)).fail("InformerWatchFailure", origin=SYSTEM)
    await world.idle()
    await world.advance(1)
    (await world.running(root, attempt=2)).succeed()

    row = await world.phase(root, Phase.SUCCEEDED)

    assert (row.user_failures, row.system_failures) == (0, 1)


async def test_system_errors_do_not_restart_a_parent_for_ever(tmp_path: Path) -> None:
    async with world_in(tmp_path, caps=Caps(system_failures=2)) as world:
        world.backend.script = lambda process: process.fail("Broken", origin=SYSTEM)
        root = await world.create(task(retries=9))
        for _ in range(4):
            await world.advance(60)

        row = await world.phase(root, Phase.FAILED)

        assert (row.attempts, row.system_failures) == (3, 3)


async def test_a_retry_waits_for_its_back_off(world: World) -> None:
    world.backend.script = lambda process: process.fail()
    root = await world.create(task(retries=1, backoff=timedelta(seconds=30)))
    await world.idle()
    await world.advance(29)
    waiting = await world.row(root)
    started = len(world.backend.started)
    held = world.server.admission.holders()
    await world.advance(1)

    assert (waiting.phase, started, held) == (Phase.QUEUED, 1, [])
    assert len(world.backend.started) == 2


async def test_the_server_caps_the_retries_that_a_task_may_ask_for(tmp_path: Path) -> None:
    async with world_in(tmp_path, caps=Caps(retries=1)) as world:
        world.backend.script = lambda process: process.fail()
        root = await world.create(task(retries=50))

        assert (await world.phase(root, Phase.FAILED)).attempts == 2
