"""From QUEUED to an end: what an action goes through, and what is left of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.domain import locations
from flyte_binary.domain.errors import Aborted
from flyte_binary.domain.phases import Phase
from tests.fakes.backend import Process
from tests.fakes.faults import Mode
from tests.flows.tasks import task
from tests.flows.world import RUN, World, world_in

Steps = list[tuple[int, Phase]]


def steps_of(events: list[run_definition_pb2.ActionEvent]) -> Steps:
    return [(event.attempt, Phase(event.phase)) for event in events]


async def test_a_run_that_succeeds_has_its_outputs_its_log_and_leaves_nothing_behind(world: World) -> None:
    def script(process: Process) -> None:
        process.print("hello")
        process.succeed()

    world.backend.script = script
    root = await world.create()

    row = await world.phase(root, Phase.SUCCEEDED)
    await world.idle()

    assert row.output_uri == "/store/r1/a0/1"
    (attempt,) = await world.attempts(root)
    assert attempt.archived_at is not None and attempt.ended_at is not None
    assert attempt.log_uri in world.store.objects
    assert steps_of(await world.events(root)) == [
        (1, Phase.QUEUED),
        (1, Phase.INITIALIZING),
        (1, Phase.RUNNING),
        (1, Phase.SUCCEEDED),
    ]
    assert world.backend.processes == {}
    assert world.server.admission.holders() == []


async def test_a_running_action_is_shown_as_running_from_the_moment_its_process_runs(world: World) -> None:
    world.backend.starts_slowly = True
    root = await world.create()
    await world.phase(root, Phase.INITIALIZING)
    await world.idle()
    world.clock.advance(seconds=3)
    world.backend.processes[root.attempt(1)].run()

    await world.phase(root, Phase.RUNNING)

    (attempt,) = await world.attempts(root)
    assert attempt.running_at == world.clock.now()
    assert attempt.launched_at == world.clock.now() - 3_000_000


async def test_an_action_can_be_retried_until_it_succeeds_and_each_attempt_has_a_folder_of_its_own(
    world: World,
) -> None:
    world.backend.script = lambda process: process.fail() if process.spec.id.number < 3 else process.succeed()
    root = await world.create(task(retries=5))

    row = await world.phase(root, Phase.SUCCEEDED)

    assert (row.attempts, row.user_failures) == (3, 2)
    assert row.output_uri == "/store/r1/a0/3"
    assert [spec.id.number for spec in world.backend.started] == [1, 2, 3]
    assert [spec.env["FLYTE_ATTEMPT_NUMBER"] for spec in world.backend.started] == ["0", "1", "2"]


async def test_the_error_file_of_an_earlier_attempt_is_never_read_again(world: World) -> None:
    """The first attempt leaves an error behind; the second one's folder must not be taken for it."""
    world.backend.script = lambda process: process.fail() if process.spec.id.number == 1 else process.succeed()
    root = await world.create(task(retries=1))

    await world.phase(root, Phase.SUCCEEDED)

    assert locations.join("/store/r1/a0/1", locations.ERROR) in world.store.objects
    first, second = (spec.argv[spec.argv.index("--outputs-path") + 1] for spec in world.backend.started)
    assert (first, second) == ("/store/r1/a0/1", "/store/r1/a0/2")


async def test_every_failed_attempt_shows_its_own_error_when_the_retries_are_exhausted(world: World) -> None:
    world.backend.script = lambda process: process.fail(message=f"attempt {process.spec.id.number}")
    root = await world.create(task(retries=2))

    await world.phase(root, Phase.FAILED)

    failed = [event for event in await world.events(root) if event.phase == Phase.FAILED]
    assert [(event.attempt, event.error_info.message) for event in failed] == [
        (1, "attempt 1"),
        (2, "attempt 2"),
        (3, "attempt 3"),
    ]


async def test_a_non_recoverable_error_uses_no_retry(world: World) -> None:
    world.backend.script = lambda process: process.fail("Fatal", recoverable=False)
    root = await world.create(task(retries=5))

    row = await world.phase(root, Phase.FAILED)

    assert (row.attempts, len(world.backend.started)) == (1, 1)


async def test_the_report_is_linked_only_if_there_is_one(world: World) -> None:
    def script(process: Process) -> None:
        if process.spec.id.action.run == "r1":
            process.write(locations.REPORT, b"<html>")
        process.succeed()

    world.backend.script = script
    with_report = await world.create(task(report=True))
    without = await world.create(task(report=True), run=type(RUN)(RUN.project, RUN.domain, "r2"))
    await world.phase(with_report, Phase.SUCCEEDED)
    await world.phase(without, Phase.SUCCEEDED)

    last = (await world.events(with_report))[-1]
    assert last.outputs.report_uri == "/store/r1/a0/1/report.html"
    assert last.outputs.output_uri == "/store/r1/a0/1/outputs.pb"
    assert (await world.events(without))[-1].outputs.report_uri == ""


async def test_a_task_that_no_process_can_run_fails_with_one_sentence_and_starts_nothing(world: World) -> None:
    spec = task()
    spec.task_template.ClearField("container")
    root = await world.create(spec)

    row = await world.phase(root, Phase.FAILED)

    assert b"has no container" in (row.error or b"")
    assert world.backend.started == []
    assert world.server.admission.holders() == []


async def test_a_launch_that_fails_for_now_is_tried_again_with_the_same_nonce(world: World) -> None:
    world.faults.plan("launch", Mode.FAILS)
    root = await world.create()
    await world.phase(root, Phase.INITIALIZING)
    (intended,) = await world.attempts(root)
    await world.idle()
    await world.look_again()
    await world.running(root)

    assert [spec.nonce for spec in world.backend.started] == [intended.nonce]


async def test_a_launch_that_took_effect_and_then_failed_is_one_process(world: World) -> None:
    world.faults.plan("launch", Mode.FAILS_AFTER)
    root = await world.create()
    await world.running(root)

    assert len(world.backend.started) == 1
    assert (await world.row(root)).attempts == 1


async def test_a_late_running_report_does_not_reopen_a_terminal_action(world: World) -> None:
    """The pass has seen the process run; before it writes that down, the run is aborted."""
    world.backend.starts_slowly = True
    root = await world.create()
    await world.phase(root, Phase.INITIALIZING)
    await world.idle()
    aborted = False

    async def abort_first() -> None:
        nonlocal aborted
        if not aborted:
            aborted = True
            await world.aborter.abort(root, "enough", None)

    before = world.faults.around

    async def around(name, effect):  # type: ignore[no-untyped-def]  # wraps whatever the fault injection wraps
        if name == "write":
            await abort_first()
        return await before(name, effect)

    world.faults.around = around  # pyright: ignore[reportAttributeAccessIssue]
    world.backend.processes[root.attempt(1)].run()
    await world.idle()

    assert aborted
    assert (await world.row(root)).phase == Phase.ABORTED
    assert Phase.RUNNING not in [Phase(event.phase) for event in await world.events(root)]


async def test_a_child_of_an_action_that_has_ended_is_refused_and_a_repetition_is_not_an_error_of_its_own(
    world: World,
) -> None:
    root = await world.create()
    process = await world.running(root)
    process.succeed()
    await world.phase(root, Phase.SUCCEEDED)

    with pytest.raises(Aborted):
        await world.enqueue("c1")


async def test_the_end_of_a_parent_and_of_its_unfinished_children_is_one_transaction(world: World) -> None:
    root = await world.create()
    parent = await world.running(root)
    child = await world.enqueue("c1")
    grandchild_parent = await world.running(child)
    grandchild = await world.enqueue("g1", parent="c1")
    condition = await world.condition("ok", parent="c1")
    await world.running(grandchild)
    grandchild_parent.obeys_stop = False

    parent.succeed()
    row = await world.phase(root, Phase.SUCCEEDED)
    others = [await world.row(action) for action in (child, grandchild, condition)]
    await world.idle()

    assert [other.phase for other in others] == [Phase.ABORTED] * 3
    assert {other.ended_at for other in others} == {row.ended_at}
    assert not world.backend.processes.get(grandchild.attempt(1))
    assert grandchild_parent.stops == 1


async def test_an_attempt_that_ends_does_not_take_the_children_with_it(world: World) -> None:
    root = await world.create(task(retries=1))
    first = await world.running(root)
    child = await world.enqueue("c1")
    process = await world.running(child)

    first.fail()
    await world.running(root, attempt=2)

    assert (await world.row(child)).phase == Phase.RUNNING
    assert process.stops == 0


async def test_the_variables_of_the_run_reach_its_children(world: World) -> None:
    run_spec = task_run_pb2.RunSpec()
    run_spec.envs.values.add(key="COLOUR", value="blue")
    root = await world.create(run_spec=run_spec)
    await world.running(root)
    await world.running(await world.enqueue("c1"))

    assert [spec.env["COLOUR"] for spec in world.backend.started] == ["blue", "blue"]


async def test_an_action_whose_spec_is_gone_fails_instead_of_waiting_for_ever(tmp_path: Path) -> None:
    async with world_in(tmp_path, started=False) as world:
        root = await world.create()
        row = await world.row(root)
        await world.database.write(
            lambda tx: tx.actions.update(row.id, at=world.clock.now(), spec_digest="gone"), run=RUN
        )
        await world.server.start()

        assert b"specification is missing" in ((await world.phase(root, Phase.FAILED)).error or b"")
