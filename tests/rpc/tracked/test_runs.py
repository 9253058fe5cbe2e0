"""Making tracked runs, and reading them beside all others."""

from __future__ import annotations

import asyncio

import pytest
from connectrpc.code import Code
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.workflow import run_service_pb2
from flyteidl2.workflow import tracked_run_service_pb2 as pb

from tests.rpc.runs.messages import PROJECT, action_id, create, run_id, task_id, task_spec
from tests.rpc.tracked.conftest import World, refused
from tests.rpc.tracked.reporting import RUN, RUNNING, SUCCEEDED, creation, report, update


async def names(world: World) -> tuple[list[str], list[str]]:
    """What TrackedRunService and what RunService list."""
    asked = run_service_pb2.ListRunsRequest(project_id=PROJECT)
    tracked, every = await world.tracked.list_runs(asked), await world.runs.list_runs(asked)
    return [run.action.id.run.name for run in tracked.runs], [run.action.id.run.name for run in every.runs]


async def test_a_tracked_run_is_listed_among_all_and_on_its_own(world: World) -> None:
    await world.runs.create_run(create("ordinary"))
    await world.tracked.create_run(creation())
    tracked, every = await names(world)
    assert tracked == [RUN]
    assert sorted(every) == [RUN, "ordinary"]


async def test_labels_of_the_request_and_of_the_run_spec_are_labels_of_the_run(world: World) -> None:
    request = creation(team="a")
    request.run_spec.CopyFrom(task_run_pb2.RunSpec(labels=task_run_pb2.Labels(values={"tier": "1"})))
    response = await world.tracked.create_run(request)
    assert dict(response.run.labels) == {"team": "a", "tier": "1"}


async def test_the_start_of_a_run_is_the_clients_unless_it_lies_in_the_future(world: World) -> None:
    request = creation()
    request.run_start_time.FromMicroseconds(world.clock.now() - 5_000_000)
    response = await world.tracked.create_run(request)
    assert response.run.action.status.start_time.ToMicroseconds() == world.clock.now() - 5_000_000
    request = creation("local-2")
    request.run_start_time.FromMicroseconds(world.clock.now() + 5_000_000)
    response = await world.tracked.create_run(request)
    assert response.run.action.status.start_time.ToMicroseconds() == world.clock.now()


async def test_a_run_without_a_name_gets_one(world: World) -> None:
    request = creation()
    request.project_id.CopyFrom(PROJECT)
    response = await world.tracked.create_run(request)
    assert response.run.action.id.run.name.startswith("local-")


async def test_a_name_is_taken_once(world: World) -> None:
    await world.tracked.create_run(creation())
    await refused(world.tracked.create_run(creation()), Code.ALREADY_EXISTS)
    await refused(world.runs.create_run(create(RUN)), Code.ALREADY_EXISTS)


def nothing_to_run() -> pb.CreateTrackedRunRequest:
    return pb.CreateTrackedRunRequest(run_id=run_id(RUN))


def nobody() -> pb.CreateTrackedRunRequest:
    return pb.CreateTrackedRunRequest(task_spec=task_spec())


def inputs_elsewhere() -> pb.CreateTrackedRunRequest:
    request = creation()
    request.offloaded_input_data.uri = "s3://elsewhere/inputs.pb"
    return request


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (nothing_to_run(), "task"),
        (nobody(), "id"),
        (inputs_elsewhere(), "offloaded_input_data.uri"),
        (creation("u-mine"), "run_id.name"),
        (creation("rmine"), "run_id.name"),
        (creation("a" * 31), "run_id.name"),
    ],
)
async def test_what_is_wrong_with_a_request_is_named(
    world: World, request_: pb.CreateTrackedRunRequest, field: str
) -> None:
    assert field in await refused(world.tracked.create_run(request_), Code.INVALID_ARGUMENT)
    assert await names(world) == ([], [])


async def test_a_task_that_is_not_deployed_is_not_found(world: World) -> None:
    request = pb.CreateTrackedRunRequest(run_id=run_id(RUN), task_id=task_id("env.unknown"))
    await refused(world.tracked.create_run(request), Code.NOT_FOUND)


async def test_other_runs_are_not_shown_by_the_reads_of_tracked_runs(world: World) -> None:
    await world.runs.create_run(create("ordinary"))
    run, action = run_id("ordinary"), action_id("ordinary")
    await refused(world.tracked.get_run_details(run_service_pb2.GetRunDetailsRequest(run_id=run)), Code.NOT_FOUND)
    await refused(
        world.tracked.get_action_details(run_service_pb2.GetActionDetailsRequest(action_id=action)), Code.NOT_FOUND
    )
    await refused(world.tracked.list_actions(run_service_pb2.ListActionsRequest(run_id=run)), Code.NOT_FOUND)
    await refused(world.tracked.abort_run(run_service_pb2.AbortRunRequest(run_id=run)), Code.NOT_FOUND)


async def test_a_watch_follows_a_tracked_run_to_its_end(world: World) -> None:
    await world.tracked.create_run(creation())
    phases: list[int] = []
    async with asyncio.timeout(10):
        async for response in world.tracked.watch_run_details(
            run_service_pb2.WatchRunDetailsRequest(run_id=run_id(RUN))
        ):
            phases.append(int(response.details.action.status.phase))
            if len(phases) == 1:
                await report(world, update(world, "a0", RUNNING, 0))
            elif phases[-1] == RUNNING:
                await report(world, update(world, "a0", SUCCEEDED, 1))
    assert phases[0] == 1
    assert phases[-2:] == [RUNNING, SUCCEEDED]


async def test_a_watch_of_tracked_runs_starts_with_them_however_many_others_are_newer(world: World) -> None:
    await world.tracked.create_run(creation())
    for number in range(101):
        world.clock.advance(seconds=0.000001)
        await world.runs.create_run(create(f"ordinary-{number}"))
    async with asyncio.timeout(10):
        async for response in world.tracked.watch_runs(run_service_pb2.WatchRunsRequest(project_id=PROJECT)):
            assert [run.action.id.run.name for run in response.runs] == [RUN]
            break
