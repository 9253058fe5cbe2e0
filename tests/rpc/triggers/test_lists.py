"""ListTriggers and the history of revisions: scopes, filters, orders, pages."""

from __future__ import annotations

import pytest
from connectrpc.code import Code
from flyteidl2.common import identifier_pb2, list_pb2
from flyteidl2.task import common_pb2, task_definition_pb2
from flyteidl2.trigger import trigger_service_pb2 as pb

from tests.rpc.runs.messages import task_id
from tests.rpc.triggers.conftest import World, refused
from tests.rpc.triggers.messages import TASK, deploy, deploy_task, deployment, named, set_active

PROJECT = identifier_pb2.ProjectIdentifier(organization="127", name="flytesnacks", domain="development")


def where(field: str, function: str, *values: str) -> list_pb2.Filter:
    return list_pb2.Filter(field=field, function=list_pb2.Filter.Function.Value(function), values=values)


async def names(world: World, request: pb.ListTriggersRequest) -> list[str]:
    found: list[str] = []
    while True:
        response = await world.triggers.list_triggers(request)
        found += [trigger.id.name.name for trigger in response.triggers]
        request.request.token = response.token
        if not response.token:
            return found


async def two_tasks(world: World) -> None:
    await deploy_task(world)
    await deploy_task(world, version="v2")
    await deploy_task(world, name="env.other")
    for name, task, version in (("a", TASK, "v1"), ("b", TASK, "v2"), ("c", "env.other", "v1")):
        world.clock.advance(seconds=1)
        await deploy(world, deployment(name, task=task, version=version))


async def test_a_list_is_of_a_project_a_task_or_a_version(world: World) -> None:
    await two_tasks(world)
    task_name = task_definition_pb2.TaskName(project="flytesnacks", domain="development", name=TASK)
    other = identifier_pb2.ProjectIdentifier(name="flytesnacks", domain="production")
    for request, expected in (
        (pb.ListTriggersRequest(), ["c", "b", "a"]),
        (pb.ListTriggersRequest(org="127"), ["c", "b", "a"]),
        (pb.ListTriggersRequest(project_id=PROJECT), ["c", "b", "a"]),
        (pb.ListTriggersRequest(project_id=other), []),
        (pb.ListTriggersRequest(task_name=task_name), ["b", "a"]),
        (pb.ListTriggersRequest(task_id=task_id(TASK, "v1")), ["a"]),
    ):
        assert await names(world, request) == expected


async def test_active_triggers_come_first_then_those_that_were_changed_last(world: World) -> None:
    await two_tasks(world)
    world.clock.advance(seconds=1)
    await set_active(world, False, "b")
    assert await names(world, pb.ListTriggersRequest(project_id=PROJECT)) == ["c", "a", "b"]


async def test_an_item_says_what_fires_it_and_when_it_fired_last(world: World) -> None:
    await deploy_task(world)
    deployed = await deploy(world, deployment())
    response = await world.triggers.list_triggers(pb.ListTriggersRequest(project_id=PROJECT))
    (item,) = response.triggers
    assert (item.id, item.status, item.automation_spec) == (deployed.id, deployed.status, deployed.automation_spec)
    assert item.active and not item.HasField("metadata")


@pytest.mark.parametrize(
    ("filtered", "expected"),
    [
        (where("active", "EQUAL", "true"), ["a", "c"]),
        (where("active", "EQUAL", "0"), ["b"]),
        (where("name", "VALUE_IN", "a"), ["a"]),
        (where("task_name", "ENDS_WITH", "other"), ["c"]),
        (where("task_version", "NOT_EQUAL", "v1"), ["b"]),
        (where("automation_type", "EQUAL", "TYPE_SCHEDULE"), ["a", "b"]),
        (where("automation_type", "EQUAL", "none"), ["c"]),
        (where("automation_type", "EQUAL", "1"), ["c"]),
        (where("deployed_at", "LESS_THAN", "2023-11-14T22:13:22Z"), ["a"]),
        (where("updated_at", "GREATER_THAN", "2023-11-14T22:13:22Z"), ["b", "c"]),
    ],
)
async def test_filters_pick_triggers(world: World, filtered: list_pb2.Filter, expected: list[str]) -> None:
    await two_tasks(world)
    await deploy(world, deployment("c", common_pb2.TriggerAutomationSpec(type=common_pb2.TYPE_NONE), task="env.other"))
    world.clock.advance(seconds=1)
    await set_active(world, False, "b")
    request = pb.ListTriggersRequest(project_id=PROJECT, request=list_pb2.ListRequest(filters=[filtered]))
    assert sorted(await names(world, request)) == expected


@pytest.mark.parametrize("key", ["active", "automation_type", "deployed_at", "name", "task_name", "updated_at"])
@pytest.mark.parametrize("direction", [list_pb2.Sort.ASCENDING, list_pb2.Sort.DESCENDING])
async def test_pages_in_any_order_hold_everything_once(
    world: World, key: str, direction: list_pb2.Sort.Direction
) -> None:
    await deploy_task(world)
    expected = [f"t{number}" for number in range(7)]
    for number, name in enumerate(expected):
        world.clock.advance(seconds=number % 2)
        await deploy(world, deployment(name, active=number % 3 > 0))
    request = pb.ListTriggersRequest(
        request=list_pb2.ListRequest(limit=2, sort_by_fields=[list_pb2.Sort(key=key, direction=direction)])
    )
    assert sorted(await names(world, request)) == expected


async def test_a_page_goes_on_behind_the_last_one_whatever_is_deployed_meanwhile(world: World) -> None:
    await deploy_task(world)
    for number in range(4):
        world.clock.advance(seconds=1)
        await deploy(world, deployment(f"t{number}"))
    request = pb.ListTriggersRequest(request=list_pb2.ListRequest(limit=2))
    first = await world.triggers.list_triggers(request)
    world.clock.advance(seconds=1)
    await deploy(world, deployment("new"))
    request.request.token = first.token
    second = await world.triggers.list_triggers(request)
    shown = [trigger.id.name.name for page in (first, second) for trigger in page.triggers]
    assert (shown, second.token) == (["t3", "t2", "t1", "t0"], "")


async def test_the_history_is_paged_from_the_newest(world: World) -> None:
    await deploy_task(world)
    for _ in range(5):
        await deploy(world, deployment())
    request = pb.GetTriggerRevisionHistoryRequest(name=named(), request=list_pb2.ListRequest(limit=2))
    found: list[int] = []
    while True:
        response = await world.triggers.get_trigger_revision_history(request)
        found += [revision.id.revision for revision in response.triggers]
        request.request.token = response.token
        if not response.token:
            break
    assert found == [5, 4, 3, 2, 1]


async def test_the_history_is_filtered_and_sorted(world: World) -> None:
    await deploy_task(world)
    await deploy(world, deployment())
    await set_active(world, False, "daily")
    await set_active(world, True, "daily")
    oldest = list_pb2.Sort(key="revision", direction=list_pb2.Sort.ASCENDING)
    for function, value, expected in (("EQUAL", "deploy", [1]), ("NOT_EQUAL", "1", [2, 3])):
        request = pb.GetTriggerRevisionHistoryRequest(
            name=named(),
            request=list_pb2.ListRequest(filters=[where("action", function, value)], sort_by_fields=[oldest]),
        )
        response = await world.triggers.get_trigger_revision_history(request)
        assert [revision.id.revision for revision in response.triggers] == expected


async def test_bad_lists_are_refused_with_the_field(world: World) -> None:
    for request, words in (
        (pb.ListTriggersRequest(request=list_pb2.ListRequest(limit=201)), "200"),
        (pb.ListTriggersRequest(request=list_pb2.ListRequest(token="x")), "token"),
        (pb.ListTriggersRequest(request=list_pb2.ListRequest(filters=[where("spec", "EQUAL", "x")])), "spec"),
        (pb.ListTriggersRequest(request=list_pb2.ListRequest(filters=[where("active", "EQUAL", "x")])), "active"),
        (pb.ListTriggersRequest(request=list_pb2.ListRequest(sort_by=list_pb2.Sort(key="spec"))), "spec"),
        (pb.ListTriggersRequest(project_id=identifier_pb2.ProjectIdentifier(name="p")), "project_id.domain"),
        (pb.ListTriggersRequest(task_name=task_definition_pb2.TaskName(project="p")), "task_name.domain"),
        (pb.ListTriggersRequest(task_id=task_id(TASK, "")), "task_id.version"),
    ):
        assert words in await refused(world.triggers.list_triggers(request), Code.INVALID_ARGUMENT)
    no_name = pb.GetTriggerRevisionHistoryRequest()
    assert "name.project" in await refused(world.triggers.get_trigger_revision_history(no_name), Code.INVALID_ARGUMENT)
