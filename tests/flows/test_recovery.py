"""A run that recovers another: what succeeded there is taken over, the rest is done."""

from __future__ import annotations

import pytest
from flyteidl2.common import identifier_pb2, run_pb2
from flyteidl2.core import literals_pb2
from flyteidl2.task import run_pb2 as task_run_pb2

from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.domain.phases import Phase
from tests.flows.world import RUN, World

YES = literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(boolean=True)))


def named(name: str) -> RunId:
    return RunId(RUN.project, RUN.domain, name)


async def a_failed_run(world: World) -> None:
    """`r1`: c-good succeeded, c-bad failed, a trace of each kind, a condition that was answered."""
    root = await world.create()
    main = await world.running(root)
    (await world.running(await world.enqueue("c-good"))).succeed()
    (await world.running(await world.enqueue("c-bad"))).fail()
    await world.phase(RUN.action("c-good"), Phase.SUCCEEDED)
    await world.phase(RUN.action("c-bad"), Phase.FAILED)
    await world.trace("t-good")
    await world.trace("t-bad", failed=True)
    await world.signaller.signal(await world.condition("ok"), YES, None)
    main.fail()
    await world.phase(root, Phase.FAILED)


async def recover(world: World, run: str, origin: str, *, force: tuple[str, ...] = ()) -> ActionId:
    spec = task_run_pb2.RunSpec()
    spec.relation.relation_type = run_pb2.RELATION_TYPE_RECOVER
    spec.relation.related_to.CopyFrom(named(origin).to_proto())
    spec.recover.force_rerun_actions.extend(force)
    root = await world.create(run=named(run), run_spec=spec)
    await world.running(root)
    return root


def origin_of(body: bytes | None) -> str:
    return identifier_pb2.ActionIdentifier.FromString(body or b"").run.name


async def test_the_root_runs_again_and_what_succeeded_below_it_is_recovered(world: World) -> None:
    await a_failed_run(world)
    await recover(world, "r2", "r1")
    good = await world.enqueue("c-good", run=named("r2"))
    bad = await world.enqueue("c-bad", run=named("r2"))
    await world.running(bad)

    row = await world.row(good)
    assert (row.phase, row.output_uri) == (Phase.RECOVERED, "/store/r1/c-good/1")
    assert origin_of(row.recovered_from) == "r1"
    assert good not in [spec.id.action for spec in world.backend.started]


async def test_succeeded_traces_stand_in_the_first_snapshot_of_the_parent(world: World) -> None:
    await a_failed_run(world)
    root = await recover(world, "r2", "r1")

    async with world.watching(root) as watched:
        told = {update.action_id.name: update for update in watched.snapshot or []}

    assert set(told) == {"a0", "t-good"}
    assert (told["t-good"].phase, told["t-good"].output_uri) == (Phase.RECOVERED, "/store/r1/t-good/outputs.pb")


async def test_actions_that_are_to_run_again_all_the_same_do(world: World) -> None:
    await a_failed_run(world)
    root = await recover(world, "r2", "r1", force=("c-good", "t-good"))
    await world.running(await world.enqueue("c-good", run=named("r2")))

    async with world.watching(root) as watched:
        assert "t-good" not in {update.action_id.name for update in watched.snapshot or []}


@pytest.mark.parametrize("kind", ["task", "trace"])
async def test_chains_of_recoveries_lead_to_the_first_origin(world: World, kind: str) -> None:
    await a_failed_run(world)
    for run, origin in (("r2", "r1"), ("r3", "r2")):
        root = await recover(world, run, origin)
        await world.enqueue("c-good", run=named(run))
        world.backend.processes[root.attempt(1)].fail()
        await world.phase(root, Phase.FAILED)

    row = await world.row(named("r3").action("c-good" if kind == "task" else "t-good"))
    assert row.phase == Phase.RECOVERED
    assert origin_of(row.recovered_from) == "r1"
    assert row.output_uri.startswith("/store/r1/")


async def test_conditions_are_asked_again(world: World) -> None:
    await a_failed_run(world)
    await recover(world, "r2", "r1")

    assert (await world.row(await world.condition("ok", run=named("r2")))).phase == Phase.PAUSED


async def test_a_retry_of_the_recovering_parent_keeps_what_was_recovered(world: World) -> None:
    await a_failed_run(world)
    root = await recover(world, "r2", "r1")
    await world.enqueue("c-good", run=named("r2"))
    world.backend.processes[root.attempt(1)].vanish()
    await world.idle()
    await world.advance(1)
    await world.running(root, attempt=2)

    async with world.watching(root) as watched:
        told = {update.action_id.name: update.phase for update in watched.snapshot or []}
    assert told == {"a0": Phase.RUNNING, "c-good": Phase.RECOVERED, "t-good": Phase.RECOVERED}
