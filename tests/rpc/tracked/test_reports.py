"""What a client reports of a run that it executes itself, and how it is shown."""

from __future__ import annotations

from connectrpc.code import Code
from flyteidl2.workflow import run_definition_pb2, run_service_pb2
from flyteidl2.workflow import tracked_run_service_pb2 as pb
from google.rpc import code_pb2

from tests.rpc.runs.messages import create, run_id
from tests.rpc.tracked.conftest import World, refused
from tests.rpc.tracked.reporting import (
    ABORTED,
    FAILED,
    INPUTS,
    RUN,
    RUNNING,
    SUCCEEDED,
    creation,
    details,
    report,
    update,
)

OUTPUTS = f"/store/uploads/flytesnacks/development/tracked-runs/{RUN}/a0/1/outputs.pb"


async def started(world: World) -> None:
    await world.tracked.create_run(creation(team="a"))
    world.clock.advance(seconds=1)
    assert await report(world, update(world, "a0", RUNNING, 0)) == [0]


async def test_a_reported_run_is_shown_with_its_actions_outputs_and_times(world: World) -> None:
    await started(world)
    assert await report(
        world,
        update(world, "child", RUNNING, 0, parent="a0", task="env.child"),
        update(world, "seen", RUNNING, 0, parent="child", trace="seen"),
    ) == [0, 0]
    world.clock.advance(seconds=2)
    await report(
        world,
        update(world, "seen", SUCCEEDED, 1),
        update(world, "child", SUCCEEDED, 1, outputs=OUTPUTS.replace("/a0/", "/child/")),
        update(world, "a0", SUCCEEDED, 1, outputs=OUTPUTS),
    )
    root = await details(world)
    assert root.metadata.source == run_definition_pb2.RUN_SOURCE_TRACKED
    assert root.status.phase == SUCCEEDED
    assert root.status.duration_ms == 3000
    assert root.attempts[0].outputs.output_uri == OUTPUTS
    uris = await world.runs.get_action_data_u_r_is(run_service_pb2.GetActionDataURIsRequest(action_id=root.id))
    assert (uris.inputs_uri, uris.outputs_uri) == (INPUTS, OUTPUTS)
    child, seen = await details(world, "child"), await details(world, "seen")
    assert child.task.short_name == "child"
    assert child.metadata.parent == "a0"
    assert seen.metadata.trace.name == "seen"
    assert seen.trace.interface.inputs.variables[0].key == "x"
    uris = await world.runs.get_action_data_u_r_is(run_service_pb2.GetActionDataURIsRequest(action_id=child.id))
    assert uris.inputs_uri == f"/store/uploads/flytesnacks/development/tracked-runs/{RUN}/child/inputs.pb"


async def test_an_attempt_after_a_failed_one_opens_the_action_again(world: World) -> None:
    await started(world)
    await report(world, update(world, "child", RUNNING, 0, parent="a0", task="env.child"))
    await report(world, update(world, "child", FAILED, 1, error="boom"))
    failed = await details(world, "child")
    assert failed.status.phase == FAILED
    assert failed.error_info.message == "boom"
    await report(world, update(world, "child", RUNNING, 0, attempt=2))
    again = await details(world, "child")
    assert again.status.phase == RUNNING
    assert not again.status.HasField("end_time")
    assert again.status.attempts == 2
    await report(world, update(world, "child", SUCCEEDED, 1, attempt=2))
    done = await details(world, "child")
    assert done.status.phase == SUCCEEDED
    assert [attempt.phase for attempt in done.attempts] == [FAILED, SUCCEEDED]


async def test_children_of_a_failed_attempt_go_on_when_their_parent_is_tried_again(world: World) -> None:
    await started(world)
    await report(world, update(world, "child", RUNNING, 0, parent="a0", task="env.child"))
    await report(world, update(world, "a0", FAILED, 1, error="boom"))
    assert (await details(world, "child")).status.phase == ABORTED
    # Not before its parent: nothing unfinished hangs below what has ended.
    await report(world, update(world, "child", RUNNING, 1))
    assert (await details(world, "child")).status.phase == ABORTED
    await report(world, update(world, "a0", RUNNING, 0, attempt=2), update(world, "child", RUNNING, 2))
    assert (await details(world, "child")).status.phase == RUNNING


async def test_a_repeated_or_late_report_changes_nothing(world: World) -> None:
    await started(world)
    first = update(world, "child", RUNNING, 0, parent="a0", task="env.child")
    last = update(world, "child", SUCCEEDED, 2)
    await report(world, first, last)
    before = await details(world, "child")
    world.clock.advance(seconds=1)
    assert await report(world, first, last, update(world, "child", FAILED, 1, error="late")) == [0, 0, 0]
    after = await details(world, "child")
    assert after.status == before.status
    assert not after.HasField("error_info")


async def test_each_update_has_a_status_of_its_own(world: World) -> None:
    await started(world)
    lost = update(world, "lost", RUNNING, 0, parent="nobody", task="env.child")
    nameless = update(world, "", RUNNING, 0, parent="a0", task="env.child")
    unknown = update(world, "unknown", SUCCEEDED, 1)
    outside = update(world, "outside", SUCCEEDED, 1, parent="a0", task="env.child", outputs="s3://elsewhere/x")
    phaseless = update(world, "phaseless", RUNNING, 0, parent="a0", task="env.child")
    phaseless.event.phase = phaseless.status.phase = 0
    good = update(world, "good", RUNNING, 0, parent="a0", task="env.child")
    codes = await report(world, lost, nameless, unknown, outside, phaseless, good)
    invalid = code_pb2.INVALID_ARGUMENT
    assert codes == [code_pb2.NOT_FOUND, invalid, invalid, invalid, invalid, 0]
    listed = await world.tracked.list_actions(run_service_pb2.ListActionsRequest(run_id=run_id(RUN)))
    assert {action.id.name for action in listed.actions} == {"a0", "good"}


async def test_reports_are_of_the_run_that_the_request_names(world: World) -> None:
    await started(world)
    other = update(world, "a0", SUCCEEDED, 1)
    other.event.id.run.name = "local-other"
    assert await report(world, other) == [code_pb2.INVALID_ARGUMENT]
    assert (await details(world)).status.phase == RUNNING


async def test_after_an_abort_by_a_user_the_client_is_told_and_moves_nothing(world: World) -> None:
    await started(world)
    await report(world, update(world, "child", RUNNING, 0, parent="a0", task="env.child"))
    await world.tracked.abort_run(run_service_pb2.AbortRunRequest(run_id=run_id(RUN), reason="enough"))
    assert await report(world, update(world, "child", SUCCEEDED, 1)) == [code_pb2.ABORTED]
    assert await report(world, update(world, "a0", RUNNING, 0, attempt=2)) == [code_pb2.ABORTED]
    assert (await details(world, "child")).status.phase == ABORTED
    assert (await details(world)).abort_info.reason == "enough"


async def test_an_interrupted_client_aborts_its_run(world: World) -> None:
    await started(world)
    await report(world, update(world, "child", RUNNING, 0, parent="a0", task="env.child"))
    reason = "aborted by user (SIGINT)"
    codes = await report(
        world, update(world, "child", ABORTED, 1, error=reason), update(world, "a0", ABORTED, 1, error=reason)
    )
    assert codes == [0, 0]
    for action in ("a0", "child"):
        found = await details(world, action)
        assert found.status.phase == ABORTED
        assert found.abort_info.reason == reason


async def test_clocks_of_clients_do_not_put_children_before_their_parents(world: World) -> None:
    await started(world)
    early = update(world, "child", RUNNING, 0, parent="a0", task="env.child")
    early.status.start_time.FromSeconds(1)
    late = update(world, "other", RUNNING, 0, parent="a0", task="env.child")
    late.status.start_time.FromSeconds(4_000_000_000)
    assert await report(world, early, late) == [0, 0]
    root = (await details(world)).status.start_time.ToMicroseconds()
    for action in ("child", "other"):
        assert root < (await details(world, action)).status.start_time.ToMicroseconds() <= world.clock.now()


async def test_reports_of_a_run_that_is_not_tracked_are_refused(world: World) -> None:
    await refused(report(world, update(world, "a0", RUNNING, 0)), Code.NOT_FOUND)
    await world.runs.create_run(create(RUN))
    await refused(report(world, update(world, "a0", SUCCEEDED, 0)), Code.NOT_FOUND)
    empty = pb.ReportTrackedActionsRequest(run_id=run_id(RUN))
    assert "updates" in await refused(world.tracked.report_actions(empty), Code.INVALID_ARGUMENT)
