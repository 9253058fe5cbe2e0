"""The cache: what is computed once, what is computed again, and who waits for whom."""

from __future__ import annotations

from datetime import timedelta

from flyteidl2.core import catalog_pb2
from flyteidl2.task import run_pb2 as task_run_pb2

from flyte_binary.domain import topics
from flyte_binary.domain.cache_entries import stored_key
from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.domain.phases import Phase
from tests.flows.tasks import task
from tests.flows.world import RUN, World

KEY = "key-1"
STORED = stored_key(RUN.project, RUN.domain, KEY)


def other_run(name: str) -> RunId:
    return RunId(RUN.project, RUN.domain, name)


async def compute(world: World, run: str, **spec: object) -> ActionId:
    """A run whose root is cached under the key, up to its end."""
    root = await world.create(task(**{"cached": True, **spec}), run=other_run(run), cache_key=KEY)  # type: ignore[arg-type]  # passed on by name
    row = await world.phase(root, Phase.RUNNING, Phase.SUCCEEDED)
    if row.phase == Phase.RUNNING:
        world.backend.processes[root.attempt(1)].succeed()
    await world.phase(root, Phase.SUCCEEDED)
    return root


def runs_started(world: World) -> list[str]:
    return [spec.id.action.run for spec in world.backend.started]


async def test_outputs_that_are_cached_are_not_computed_again(world: World) -> None:
    first = await compute(world, "r1")
    second = await compute(world, "r2")

    row, hit = await world.row(first), await world.row(second)
    assert runs_started(world) == ["r1"]
    assert (row.cache_status, hit.cache_status) == (catalog_pb2.CACHE_POPULATED, catalog_pb2.CACHE_HIT)
    assert hit.output_uri == row.output_uri == "/store/r1/a0/1"
    (event,) = await world.events(second)
    assert event.cache_status == catalog_pb2.CACHE_HIT
    assert event.outputs.output_uri == "/store/r1/a0/1/outputs.pb"


async def test_a_hit_needs_no_share_of_the_machine(world: World) -> None:
    await compute(world, "r1")
    world.server.admission.closed = True

    await compute(world, "r2")


async def test_a_task_that_is_not_cached_is_computed_each_time_whatever_its_key(world: World) -> None:
    await compute(world, "r1", cached=False)
    await compute(world, "r2", cached=False)

    assert runs_started(world) == ["r1", "r2"]


async def test_outputs_that_are_gone_are_a_miss_and_are_replaced(world: World) -> None:
    await compute(world, "r1")
    del world.store.objects["/store/r1/a0/1/outputs.pb"]
    await compute(world, "r2")
    del world.store.objects["/store/r2/a0/1/outputs.pb"]
    await compute(world, "r3")

    assert runs_started(world) == ["r1", "r2", "r3"]


async def test_outputs_older_than_the_task_allows_are_a_miss_and_are_replaced(world: World) -> None:
    age = timedelta(hours=1)
    await compute(world, "r1", max_age=age)
    world.clock.advance(seconds=3600)
    await compute(world, "r2", max_age=age)
    world.clock.advance(seconds=1)
    await compute(world, "r3", max_age=age)
    await compute(world, "r4", max_age=age)

    assert runs_started(world) == ["r1", "r3"]


async def test_a_run_that_overwrites_computes_and_its_outputs_are_the_ones_that_count(world: World) -> None:
    await compute(world, "r1")
    root = await world.create(
        task(cached=True),
        run=other_run("r2"),
        cache_key=KEY,
        run_spec=task_run_pb2.RunSpec(overwrite_cache=True),
    )
    (await world.running(root)).succeed()
    await world.phase(root, Phase.SUCCEEDED)
    third = await compute(world, "r3")

    assert (await world.row(third)).output_uri == "/store/r2/a0/1"


async def test_the_first_of_two_that_computed_the_same_stays(world: World) -> None:
    roots = [await world.create(task(cached=True), run=other_run(name), cache_key=KEY) for name in ("r1", "r2")]
    processes = [await world.running(root) for root in roots]
    for root, process in zip(reversed(roots), reversed(processes), strict=True):
        process.succeed()
        await world.phase(root, Phase.SUCCEEDED)

    assert (await world.row(await compute(world, "r3"))).output_uri == "/store/r2/a0/1"


async def two_that_race(world: World) -> tuple[ActionId, ActionId]:
    """The first computes, the second waits for it."""
    first, second = [
        await world.create(task(serializable=True, retries=1), run=other_run(name), cache_key=KEY)
        for name in ("r1", "r2")
    ]
    await world.running(first)
    await world.phase(second, Phase.WAITING_FOR_RESOURCES)
    return first, second


async def test_two_that_race_for_a_serializable_key_compute_once(world: World) -> None:
    first, second = await two_that_race(world)
    world.backend.processes[first.attempt(1)].succeed()

    row = await world.phase(second, Phase.SUCCEEDED)

    assert runs_started(world) == ["r1"]
    assert row.output_uri == "/store/r1/a0/1"
    assert await world.database.read(lambda tx: tx.cache.reservation(STORED)) is None


async def test_two_that_race_compute_once_across_a_restart(world: World) -> None:
    first, second = await two_that_race(world)
    await world.restart()
    await world.idle()
    meanwhile = (await world.row(second)).phase
    world.backend.processes[first.attempt(1)].succeed()
    await world.phase(second, Phase.SUCCEEDED)

    assert meanwhile == Phase.WAITING_FOR_RESOURCES
    assert runs_started(world) == ["r1"]


async def test_the_reservation_outlives_a_retry_of_its_holder(world: World) -> None:
    first, second = await two_that_race(world)
    world.backend.processes[first.attempt(1)].fail()
    (await world.running(first, attempt=2)).succeed()
    await world.phase(second, Phase.SUCCEEDED)

    assert runs_started(world) == ["r1", "r1"]


async def test_the_next_one_computes_if_the_first_fails_or_is_aborted(world: World) -> None:
    first, second = await two_that_race(world)
    third = await world.create(task(serializable=True), run=other_run("r3"), cache_key=KEY)
    await world.phase(third, Phase.WAITING_FOR_RESOURCES)
    world.backend.processes[first.attempt(1)].fail(recoverable=False)
    await world.idle()
    after_failure = await winner_of(world, second, third)
    await world.aborter.abort(after_failure, "enough", None)
    await world.idle()
    (last,) = {second, third} - {after_failure}
    (await world.running(last)).succeed()

    assert (await world.phase(last, Phase.SUCCEEDED)).output_uri == f"/store/{last.run}/a0/1"


async def winner_of(world: World, *actions: ActionId) -> ActionId:
    running = [action for action in actions if (await world.row(action)).phase == Phase.RUNNING]
    assert len(running) == 1
    return running[0]


async def test_an_expired_reservation_of_an_outside_owner_does_not_hold_up_for_ever(world: World) -> None:
    expires = world.clock.now() + 30_000_000
    await world.database.write(
        lambda tx: tx.cache.reserve(STORED, "somebody", at=world.clock.now(), heartbeat_seconds=10, expires_at=expires)
    )
    root = await world.create(task(serializable=True), cache_key=KEY)
    await world.phase(root, Phase.WAITING_FOR_RESOURCES)
    await world.idle()
    timer = world.server.controller.queue.due_in(root)
    await world.advance(29)
    before = (await world.row(root)).phase
    await world.advance(2)
    await world.running(root)

    assert before == Phase.WAITING_FOR_RESOURCES
    assert timer is not None and timer <= 30


async def test_a_reservation_that_an_outside_owner_gives_back_wakes_who_waits(world: World) -> None:
    await world.database.write(
        lambda tx: tx.cache.reserve(STORED, "somebody", at=world.clock.now(), expires_at=world.clock.now() + 10**9)
    )
    root = await world.create(task(serializable=True), cache_key=KEY)
    await world.phase(root, Phase.WAITING_FOR_RESOURCES)
    await world.idle()

    def give_back(tx):  # type: ignore[no-untyped-def]  # a transaction
        tx.cache.release(STORED, "somebody")
        tx.changed(topics.CACHE, (STORED,))

    await world.database.write(give_back)

    await world.running(root)


async def test_a_child_and_a_root_of_the_same_key_share_their_outputs(world: World) -> None:
    await compute(world, "r1")
    await world.running(await world.create(run=other_run("r2")))
    child = await world.enqueue("c1", task(cached=True), run=other_run("r2"), cache_key=KEY)

    assert (await world.phase(child, Phase.SUCCEEDED)).output_uri == "/store/r1/a0/1"
