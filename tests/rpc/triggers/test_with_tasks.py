"""Triggers that come with a task's deployment, and what tasks show of their triggers."""

from __future__ import annotations

import pytest
from connectrpc.code import Code
from flyteidl2.common import identifier_pb2, list_pb2
from flyteidl2.task import common_pb2, task_definition_pb2, task_service_pb2

from tests.rpc.runs.messages import inputs, task_id, task_spec
from tests.rpc.triggers.conftest import World, refused
from tests.rpc.triggers.messages import (
    TASK,
    cron,
    delete,
    deploy,
    deploy_task,
    deployment,
    details,
    listed,
    set_active,
    task_trigger,
)


async def summary(world: World, version: str = "v1") -> task_definition_pb2.TaskTriggersSummary | None:
    request = task_service_pb2.GetTaskDetailsRequest(task_id=task_id(TASK, version))
    metadata = (await world.tasks.get_task_details(request)).details.metadata
    return metadata.triggers_summary if metadata.HasField("triggers_summary") else None


async def tasks(world: World, *filters: list_pb2.Filter, sort: str = "name") -> list[task_definition_pb2.Task]:
    request = task_service_pb2.ListTasksRequest(
        project_id=identifier_pb2.ProjectIdentifier(name="flytesnacks", domain="development"),
        request=list_pb2.ListRequest(
            filters=filters, sort_by_fields=[list_pb2.Sort(key=sort, direction=list_pb2.Sort.ASCENDING)], limit=2
        ),
    )
    found: list[task_definition_pb2.Task] = []
    while True:
        response = await world.tasks.list_tasks(request)
        found += response.tasks
        request.request.token = response.token
        if not response.token:
            return found


def where(field: str, function: str, value: str) -> list_pb2.Filter:
    return list_pb2.Filter(field=field, function=list_pb2.Filter.Function.Value(function), values=[value])


async def test_a_task_brings_its_triggers_in_its_version(world: World) -> None:
    trigger = task_trigger("daily", cron("0 3 * * *", "Europe/Berlin", kickoff="t"))
    trigger.spec.inputs.CopyFrom(inputs(x=5))
    trigger.spec.description = "ä" * 200
    await deploy_task(world, trigger, task_trigger("off", active=False), version="v7")

    assert await listed(world) == [("daily", True), ("off", False)]
    deployed = await details(world)
    assert (deployed.spec.task_version, deployed.spec.active, deployed.id.revision) == ("v7", True, 1)
    assert deployed.spec.inputs == trigger.spec.inputs
    assert deployed.spec.description == "ä" * 127
    assert deployed.automation_spec == trigger.automation_spec


async def test_the_triggers_of_a_deployment_replace_those_before(world: World) -> None:
    await deploy_task(world, task_trigger("a"), task_trigger("b"))
    await deploy(world, deployment("own"))
    await deploy_task(world, task_trigger("b"), task_trigger("c"), version="v2")
    assert sorted(await listed(world)) == [("b", True), ("c", True)]
    assert (await details(world, "b")).id.revision == 2


async def test_a_deployment_without_triggers_takes_along_only_those_that_came_with_the_task(world: World) -> None:
    await deploy_task(world, task_trigger("a"))
    await deploy(world, deployment("own"))
    await deploy_task(world, version="v2")
    assert await listed(world) == [("own", True)]


async def test_the_triggers_of_another_task_stay(world: World) -> None:
    await deploy_task(world, task_trigger("a"), name="env.other")
    await deploy_task(world, task_trigger("a"))
    await deploy_task(world, task_trigger("b"))
    assert await listed(world, "env.other") == [("a", True)]


async def test_a_bad_trigger_keeps_the_task_from_being_deployed(world: World) -> None:
    for trigger, words in (
        (task_trigger("daily", cron("0 0 30 2 *")), "never run"),
        (task_trigger("daily", cron("@daily", kickoff="nosuch")), "no input 'nosuch'"),
        (task_trigger(""), "name is required"),
    ):
        request = task_service_pb2.DeployTaskRequest(task_id=task_id(), spec=task_spec(), triggers=[trigger])
        assert words in await refused(world.tasks.deploy_task(request), Code.INVALID_ARGUMENT)
    twice = task_service_pb2.DeployTaskRequest(
        task_id=task_id(), spec=task_spec(), triggers=[task_trigger("a"), task_trigger("a")]
    )
    assert "twice" in await refused(world.tasks.deploy_task(twice), Code.INVALID_ARGUMENT)
    unknown = task_service_pb2.GetTaskDetailsRequest(task_id=task_id())
    await refused(world.tasks.get_task_details(unknown), Code.NOT_FOUND)


async def test_one_trigger_is_described_and_several_are_counted(world: World) -> None:
    # A start time has bytes above 127, which the reference loses.
    rate = common_pb2.FixedRate(value=300, unit=common_pb2.FIXED_RATE_UNIT_MINUTE)
    rate.start_time.FromJsonString("2026-11-30T22:56:16.234119Z")
    automation = common_pb2.TriggerAutomationSpec(
        type=common_pb2.TYPE_SCHEDULE, schedule=common_pb2.Schedule(rate=rate)
    )
    await deploy_task(world)
    assert await summary(world) is None
    await deploy(world, deployment("rate", automation))
    one = await summary(world)
    assert one is not None and (one.details.name, one.details.active) == ("rate", True)
    assert one.details.automation_spec == automation

    await deploy(world, deployment("daily"))
    await set_active(world, False, "rate")
    many = await summary(world)
    assert many is not None and (many.stats.total, many.stats.active) == (2, 1)
    await delete(world, "daily")
    last = await summary(world)
    assert last is not None and (last.details.name, last.details.active) == ("rate", False)


async def test_a_version_shows_the_triggers_that_start_it(world: World) -> None:
    await deploy_task(world, task_trigger("daily"))
    await deploy_task(world, task_trigger("daily"), version="v2")
    newest = await summary(world, "v2")
    assert await summary(world) is None
    assert newest is not None and newest.details.name == "daily"


@pytest.mark.parametrize(
    ("filtered", "expected"),
    [
        (where("total_triggers", "GREATER_THAN", "0"), ["env.one", "env.two"]),
        (where("total_triggers", "EQUAL", "0"), ["env.none"]),
        (where("active_triggers", "EQUAL", "1"), ["env.one", "env.two"]),
        (where("trigger_name", "EQUAL", "daily"), ["env.one"]),
        (where("trigger_name", "CONTAINS_CASE_INSENSITIVE", "DAI"), ["env.one"]),
    ],
)
async def test_tasks_are_found_by_their_triggers(world: World, filtered: list_pb2.Filter, expected: list[str]) -> None:
    await deploy_task(world, name="env.none")
    await deploy_task(world, task_trigger("daily"), name="env.one")
    await deploy_task(world, task_trigger("a"), task_trigger("b", active=False), name="env.two")
    assert [task.task_id.name for task in await tasks(world, filtered)] == expected


@pytest.mark.parametrize("key", ["total_triggers", "active_triggers", "trigger_name"])
async def test_tasks_are_sorted_by_their_triggers_across_pages(world: World, key: str) -> None:
    for number in range(5):
        triggers = [task_trigger(f"t{index}") for index in range(number)]
        await deploy_task(world, *triggers, name=f"env.task{number}")
    found = [task.task_id.name for task in await tasks(world, sort=key)]
    numbers = [int(name[-1]) for name in found]
    assert sorted(numbers) == [0, 1, 2, 3, 4]
    if key == "trigger_name":
        assert numbers[-1] == 1
    else:
        assert numbers == [0, 1, 2, 3, 4]
    totals = {task.task_id.name: task.metadata.triggers_summary.stats.total for task in await tasks(world)}
    assert totals["env.task4"] == 4
