"""Conditions: paused until signalled, aborted or out of time."""

from __future__ import annotations

import pytest
from flyteidl2.core import execution_pb2, literals_pb2, types_pb2

from flyte_binary.domain.errors import FailedPrecondition, InvalidArgument, NotFound
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from tests.flows.world import RUN, World


def literal(**primitive: object) -> literals_pb2.Literal:
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(**primitive)))  # type: ignore[arg-type]  # one of its fields by name


async def an_open_condition(world: World, **kind: object) -> ActionId:
    await world.running(await world.create())
    condition = await world.condition("ok", **kind)  # type: ignore[arg-type]  # passed on by name
    await world.idle()
    return condition


async def test_a_condition_pauses_until_it_is_signalled_and_its_value_is_told(world: World) -> None:
    condition = await an_open_condition(world)
    paused = (await world.row(condition)).phase
    async with world.watching(RUN.root()) as watched:
        await world.signaller.signal(condition, literal(boolean=True), b"who")
        update = await watched.phase_of("ok", Phase.SUCCEEDED)

    assert paused == Phase.PAUSED
    assert update.value == literal(boolean=True)
    assert update.output_uri == ""
    assert (await world.row(condition)).signalled_by == b"who"


async def test_the_same_value_again_is_fine_and_another_one_is_refused(world: World) -> None:
    condition = await an_open_condition(world)
    await world.signaller.signal(condition, literal(boolean=True), None)
    await world.signaller.signal(condition, literal(boolean=True), None)

    with pytest.raises(FailedPrecondition, match="another value"):
        await world.signaller.signal(condition, literal(boolean=False), None)


@pytest.mark.parametrize(
    ("simple", "value"),
    [
        (types_pb2.BOOLEAN, literal(integer=1)),
        (types_pb2.FLOAT, literal(integer=1)),
        (types_pb2.INTEGER, literal(float_value=1.0)),
        (types_pb2.STRING, literal(boolean=True)),
        (types_pb2.BOOLEAN, literals_pb2.Literal()),
        (types_pb2.BOOLEAN, literals_pb2.Literal(scalar=literals_pb2.Scalar(none_type=literals_pb2.Void()))),
    ],
)
async def test_a_value_of_another_kind_is_refused_and_the_condition_stays_open(
    world: World, simple: types_pb2.SimpleType, value: literals_pb2.Literal
) -> None:
    condition = await an_open_condition(world, simple=simple)

    with pytest.raises(InvalidArgument):
        await world.signaller.signal(condition, value, None)

    assert (await world.row(condition)).phase == Phase.PAUSED


async def test_what_is_no_condition_or_does_not_exist_cannot_be_signalled(world: World) -> None:
    await world.running(await world.create())

    with pytest.raises(FailedPrecondition, match="not a condition"):
        await world.signaller.signal(RUN.root(), literal(boolean=True), None)
    with pytest.raises(NotFound):
        await world.signaller.signal(RUN.action("nobody"), literal(boolean=True), None)


async def test_a_condition_times_out_and_never_a_microsecond_early(world: World) -> None:
    condition = await an_open_condition(world, timeout_seconds=30)
    await world.server.stop()
    world.clock.moment += 30_000_000 - 1
    again = await world.server.reconciler.reconcile(condition)
    almost = (await world.row(condition)).phase
    world.clock.moment += 1
    await world.server.reconciler.reconcile(condition)
    row = await world.phase(condition, Phase.TIMED_OUT)

    assert (almost, again) == (Phase.PAUSED, 0.000001)
    assert execution_pb2.ExecutionError.FromString(row.error or b"").code == "ConditionTimedOut"
    with pytest.raises(FailedPrecondition, match="TIMED_OUT"):
        await world.signaller.signal(condition, literal(boolean=True), None)


async def test_the_executor_comes_back_for_the_timeout_by_itself(world: World) -> None:
    condition = await an_open_condition(world, timeout_seconds=30)

    assert world.server.controller.queue.due_in(condition) == pytest.approx(30, abs=2)


async def test_a_signal_wins_over_a_timeout_that_nobody_has_seen_yet(world: World) -> None:
    condition = await an_open_condition(world, timeout_seconds=30)
    world.clock.advance(seconds=31)
    await world.signaller.signal(condition, literal(boolean=True), None)
    await world.look_again()

    assert (await world.row(condition)).phase == Phase.SUCCEEDED


async def test_a_suspended_machine_does_not_use_up_the_time_of_a_condition(world: World) -> None:
    condition = await an_open_condition(world, timeout_seconds=30)
    world.clock.sleep(seconds=3600)
    await world.look_again()

    assert (await world.row(condition)).phase == Phase.PAUSED


async def test_a_condition_times_out_after_a_restart_too(world: World) -> None:
    condition = await an_open_condition(world, timeout_seconds=30)
    await world.server.kill()
    world.clock.advance(seconds=60)
    await world.restart()

    await world.phase(condition, Phase.TIMED_OUT)


async def test_a_condition_of_a_run_that_is_aborted_is_aborted(world: World) -> None:
    condition = await an_open_condition(world, timeout_seconds=30)
    await world.aborter.abort(RUN.root(), "enough", None)
    await world.advance(60)

    assert (await world.row(condition)).phase == Phase.ABORTED


async def test_a_type_that_cannot_be_signalled_is_refused_at_once(world: World) -> None:
    await world.running(await world.create())

    with pytest.raises(InvalidArgument, match="BOOLEAN, INTEGER, FLOAT or STRING"):
        await world.condition("ok", simple=types_pb2.STRUCT)
