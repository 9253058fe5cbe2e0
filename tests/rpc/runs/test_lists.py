"""ListRuns and ListActions: scopes, filters, orders and pages."""

from __future__ import annotations

from typing import Any

import pytest
from connectrpc.code import Code
from flyteidl2.common import identifier_pb2, identity_pb2, list_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2, run_service_pb2

from flyte_binary.domain.ids import TaskId
from flyte_binary.domain.phases import Phase
from flyte_binary.runs.view.action import CONDITION, TRACE
from tests.rpc.runs.conftest import Server
from tests.rpc.runs.messages import PROJECT, create, run_id
from tests.rpc.runs.rows import add, run_of, started, to
from tests.rpc.runs.test_create import refused


def where(field: str, function: str, *values: str) -> list_pb2.Filter:
    return list_pb2.Filter(field=field, function=list_pb2.Filter.Function.Value(function), values=values)


def by(*keys: str) -> list[list_pb2.Sort]:
    """Keys in their order; a `-` before one turns it around."""
    return [
        list_pb2.Sort(
            key=key.removeprefix("-"), direction=list_pb2.Sort.DESCENDING if key[0] == "-" else list_pb2.Sort.ASCENDING
        )
        for key in keys
    ]


async def runs(server: Server, *filters: list_pb2.Filter, **scope: Any) -> list[str]:
    """Names, by name."""
    scope = scope or {"project_id": PROJECT}
    request = list_pb2.ListRequest(filters=filters, limit=200, sort_by_fields=by("run_name"))
    response = await server.runs.list_runs(run_service_pb2.ListRunsRequest(request=request, **scope))
    return [run.action.id.run.name for run in response.runs]


async def names(server: Server, *filters: list_pb2.Filter) -> set[str]:
    request = list_pb2.ListRequest(filters=filters)
    response = await server.runs.list_actions(run_service_pb2.ListActionsRequest(request=request, run_id=run_id("r1")))
    return {action.id.name for action in response.actions}


async def test_runs_come_unfinished_first_then_newest(server: Server) -> None:
    for name in ("r1", "r2", "r3", "r4"):
        await started(server, name)
        server.clock.advance(seconds=1)
    await to(server, run_of("r4").root(), Phase.RUNNING)
    await to(server, run_of("r3").root(), Phase.SUCCEEDED)
    response = await server.runs.list_runs(run_service_pb2.ListRunsRequest(project_id=PROJECT))

    assert [run.action.id.run.name for run in response.runs] == ["r2", "r1", "r4", "r3"]
    assert response.token == ""


async def test_every_scope_narrows_to_its_runs(server: Server) -> None:
    await started(server, "r1")
    other = create("r2")
    other.task_spec.task_template.id.name = "env.other"
    await server.runs.create_run(other)
    elsewhere = create("r3")
    elsewhere.run_id.domain = "staging"
    await server.runs.create_run(elsewhere)
    await add(server, run_of("r4").root(), trigger_name="daily", trigger_task_name="env.hello")
    hello = {"project": "flytesnacks", "domain": "development", "name": "env.hello"}

    assert await runs(server) == ["r1", "r2", "r4"]
    assert await runs(server, org="127") == ["r1", "r2", "r3", "r4"]
    assert await runs(server, task_name=task_definition_pb2.TaskName(**hello)) == ["r1", "r3"]
    assert await runs(server, task_id=task_definition_pb2.TaskIdentifier(**hello, version="v1")) == ["r1", "r3"]
    assert await runs(server, task_id=task_definition_pb2.TaskIdentifier(**hello, version="v2")) == []
    trigger = identifier_pb2.TriggerName(
        project="flytesnacks", domain="development", name="daily", task_name="env.hello"
    )
    assert await runs(server, trigger_name=trigger) == ["r4"]


async def test_runs_with_a_paused_action_can_be_asked_for(server: Server) -> None:
    await started(server, "r1")
    await started(server, "r2")
    await add(server, run_of("r2").action("c"), Phase.PAUSED, action_type=CONDITION)

    assert await runs(server, project_id=PROJECT, paused_actions_only=True) == ["r2"]


async def test_pages_neither_repeat_nor_miss_runs_while_others_are_created(server: Server) -> None:
    for number in range(7):
        await started(server, f"r{number}")
        server.clock.advance(seconds=1)
    seen: list[str] = []
    token = ""
    for page in range(10):
        request = list_pb2.ListRequest(limit=2, token=token, sort_by=by("-created_at")[0])
        response = await server.runs.list_runs(run_service_pb2.ListRunsRequest(request=request, project_id=PROJECT))
        seen += [run.action.id.run.name for run in response.runs]
        token = response.token
        await started(server, f"rnew{page}")
        server.clock.advance(seconds=1)
        if not token:
            break

    assert seen == ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]


@pytest.mark.parametrize(
    "order",
    [
        ("ended_at",),
        ("-ended_at",),
        ("-duration_ms", "run_name"),
        ("phase", "-created_at"),
        ("task_name", "-run_name"),
        ("created_by_subject", "ended_at"),
    ],
)
@pytest.mark.parametrize("limit", [1, 3])
async def test_pages_put_together_are_the_whole_list_in_any_order(
    server: Server, order: tuple[str, ...], limit: int
) -> None:
    """Equal times and runs that have not ended yet included; NULL is the largest value, as on PostgreSQL."""
    for number in range(7):
        root = await started(server, f"r{number}")
        if number % 2:
            server.clock.advance(seconds=number % 3)
            await to(server, root, Phase.SUCCEEDED if number % 3 else Phase.FAILED)
    whole = await server.runs.list_runs(
        run_service_pb2.ListRunsRequest(request=list_pb2.ListRequest(sort_by_fields=by(*order)), project_id=PROJECT)
    )
    pages: list[run_definition_pb2.Run] = []
    token = ""
    while True:
        request = list_pb2.ListRequest(limit=limit, token=token, sort_by_fields=by(*order))
        response = await server.runs.list_runs(run_service_pb2.ListRunsRequest(request=request, project_id=PROJECT))
        assert len(response.runs) <= limit
        pages += response.runs
        token = response.token
        if not token:
            break

    assert len(pages) == 7
    assert pages == list(whole.runs)
    ended = [run.action.status.HasField("end_time") for run in pages]
    if order == ("ended_at",):
        assert ended == sorted(ended, reverse=True)
    if order == ("-ended_at",):
        assert ended == sorted(ended)


async def test_an_offset_is_understood_as_the_reference_makes_them(server: Server) -> None:
    for number in range(4):
        await started(server, f"r{number}")
    request = list_pb2.ListRequest(limit=2, token="1", sort_by_fields=by("run_name"))
    response = await server.runs.list_runs(run_service_pb2.ListRunsRequest(request=request, project_id=PROJECT))

    assert [run.action.id.run.name for run in response.runs] == ["r1", "r2"]
    request.token = response.token
    response = await server.runs.list_runs(run_service_pb2.ListRunsRequest(request=request, project_id=PROJECT))
    assert [run.action.id.run.name for run in response.runs] == ["r3"]


async def test_phases_are_filtered_as_the_sdk_asks(server: Server) -> None:
    for name, phase in (("r1", Phase.RUNNING), ("r2", Phase.FAILED), ("r3", Phase.SUCCEEDED)):
        await to(server, await started(server, name), phase)
    await add(server, run_of("r4").root(), Phase.RECOVERED)

    assert await runs(server, where("phase", "EQUAL", "6")) == ["r2"]
    assert await runs(server, where("phase", "VALUE_IN", "6")) == ["r2"]
    assert await runs(server, where("phase", "VALUE_IN", "4", "5")) == ["r1", "r3"]
    assert await runs(server, where("phase", "VALUE_NOT_IN", "4")) == ["r2", "r3", "r4"]
    assert await runs(server, where("phase", "EQUAL", "1", "0")) == ["r4"]
    assert await runs(server, where("phase", "EQUAL", "failed")) == ["r2"]
    assert await runs(server, where("phase", "GREATER_THAN_OR_EQUAL", "6")) == ["r2", "r4"]


async def test_texts_are_found_as_they_are_written_wildcards_included(server: Server) -> None:
    for name, task in (("r1", "env.a_b"), ("r2", "env.axb"), ("r3", "env.A_B"), ("r4", "env.a%ß")):
        await add(
            server,
            run_of(name).root(),
            task=TaskId("p", "d", task, "v"),
            function_name=task,
            search_name=task.casefold(),
            environment_name="env",
        )

    assert await runs(server, where("task_name", "CONTAINS", "a_b")) == ["r1"]
    assert await runs(server, where("task_name", "CONTAINS", "a%")) == ["r4"]
    assert await runs(server, where("task_name", "CONTAINS", "")) == ["r1", "r2", "r3", "r4"]
    assert await runs(server, where("task_name", "CONTAINS_CASE_INSENSITIVE", "A_B")) == ["r1", "r3"]
    assert await runs(server, where("task_name", "CONTAINS_CASE_INSENSITIVE", "%SS")) == ["r4"]
    assert await runs(server, where("run_name", "CONTAINS_CASE_INSENSITIVE", "R1")) == ["r1"]
    assert await runs(server, where("task_name", "ENDS_WITH", "_b")) == ["r1"]
    assert await runs(server, where("task_name", "ENDS_WITH", "a much longer text than any of the names")) == []
    assert await runs(server, where("task_name", "NOT_ENDS_WITH", "_b")) == ["r2", "r3", "r4"]
    assert await runs(server, where("task_name", "ENDS_WITH", "ß")) == ["r4"]


async def test_labels_are_filtered_by_value_and_by_presence(server: Server) -> None:
    for name, labels in (("r1", {"team": "ml"}), ("r2", {"team": "web", "x": ""}), ("r3", {})):
        await started(server, name, run_spec=task_run_pb2.RunSpec(labels=task_run_pb2.Labels(values=labels)))
    response = await server.runs.list_runs(
        run_service_pb2.ListRunsRequest(
            request=list_pb2.ListRequest(filters=[where("labels.team", "EQUAL", "ml")]), project_id=PROJECT
        )
    )

    assert [dict(run.labels) for run in response.runs] == [{"team": "ml"}]
    assert await runs(server, where("labels.team", "EXISTS")) == ["r1", "r2"]
    assert await runs(server, where("labels.x", "EXISTS")) == ["r2"]
    assert await runs(server, where("labels.team", "NOT_EXISTS")) == ["r3"]
    assert await runs(server, where("labels.team", "NOT_EQUAL", "ml")) == ["r2"]
    assert await runs(server, where("labels.team", "VALUE_IN", "ml", "web")) == ["r1", "r2"]
    assert await runs(server, where("labels.team", "EXISTS"), where("labels.x", "NOT_EXISTS")) == ["r1"]
    assert await runs(server, where("labels.team", "CONTAINS", "%")) == []


async def test_runs_are_found_by_who_created_them_and_when(server: Server) -> None:
    await server.runs.create_run(create("r1"), headers={"x-subject": "ann"})
    before = server.clock.now()
    server.clock.advance(seconds=3600)
    await started(server, "r2")

    assert await runs(server, where("created_by", "EQUAL", "ann")) == ["r1"]
    assert await runs(server, where("created_by", "EXISTS")) == ["r1"]
    assert await runs(server, where("created_by_subject", "NOT_EXISTS")) == ["r2"]
    assert before == 1_700_000_000_000_000
    assert await runs(server, where("created_at", "GREATER_THAN", "2023-11-14T22:13:20+00:00")) == ["r2"]
    assert await runs(server, where("created_at", "LESS_THAN_OR_EQUAL", "2023-11-14T22:13:20Z")) == ["r1"]
    assert await runs(server, where("ended_at", "NOT_EXISTS")) == ["r1", "r2"]


@pytest.mark.parametrize(
    ("request_made", "named"),
    [
        (list_pb2.ListRequest(limit=1000), "invalid limit"),
        (list_pb2.ListRequest(token="abc"), "invalid token"),
        (list_pb2.ListRequest(token="-1"), "invalid token"),
        (list_pb2.ListRequest(filters=[where("nosuch", "EQUAL", "x")]), "nosuch"),
        (list_pb2.ListRequest(filters=[where("phase", "EQUAL", "foo")]), "phase"),
        (list_pb2.ListRequest(filters=[where("trigger_type", "EQUAL", "1")]), "trigger_type"),
        (list_pb2.ListRequest(sort_by=list_pb2.Sort(key="nosuch")), "nosuch"),
        (list_pb2.ListRequest(sort_by=list_pb2.Sort(key="trigger_type")), "trigger_type"),
    ],
)
async def test_a_wrong_list_request_is_refused(server: Server, request_made: list_pb2.ListRequest, named: str) -> None:
    call = server.runs.list_runs(run_service_pb2.ListRunsRequest(request=request_made, project_id=PROJECT))
    assert named in await refused(call, Code.INVALID_ARGUMENT)


async def test_actions_carry_all_that_is_known_of_them(server: Server) -> None:
    condition = run_definition_pb2.ConditionAction(name="go?")
    condition.type.simple = 4
    await started(server, "r1")
    await add(server, run_of("r1").action("leaf"), Phase.RUNNING, action_group="g")
    await add(
        server,
        run_of("r1").action("cond"),
        Phase.PAUSED,
        action_type=CONDITION,
        function_name="go?",
        detail=condition.SerializeToString(),
    )
    await add(server, run_of("r1").action("trace"), Phase.SUCCEEDED, action_type=TRACE, function_name="t1")
    response = await server.runs.list_actions(run_service_pb2.ListActionsRequest(run_id=run_id("r1")))
    metadata = {action.id.name: action.metadata for action in response.actions}

    assert metadata["a0"].task.id.name == "env.hello"
    assert (metadata["leaf"].parent, metadata["leaf"].group, metadata["leaf"].task.short_name) == ("a0", "g", "leaf")
    assert (metadata["cond"].condition.name, metadata["cond"].condition.type.simple) == ("go?", 4)
    assert metadata["trace"].trace.name == "t1"
    assert metadata["trace"].action_type == TRACE


async def test_actions_are_filtered_as_the_sdk_asks(server: Server) -> None:
    await started(server, "r1")
    await add(server, run_of("r1").action("b"))
    await add(server, run_of("r1").action("c"), parent="b")
    await add(server, run_of("r1").action("d"), Phase.PAUSED, action_type=CONDITION, parent="b")
    await started(server, "r2")

    assert await names(server) == {"a0", "b", "c", "d"}
    assert await names(server, where("parent_name", "EQUAL", "b")) == {"c", "d"}
    assert await names(server, where("parent_name", "NOT_EXISTS")) == {"a0"}
    assert await names(server, where("action_type", "EQUAL", "3")) == {"d"}
    assert await names(server, where("action_type", "EQUAL", "3"), where("parent_name", "EQUAL", "a0")) == set()


async def test_actions_of_a_run_that_does_not_exist_are_none(server: Server) -> None:
    assert await names(server) == set()


async def test_a_run_is_listed_with_who_created_it(server: Server) -> None:
    await server.runs.create_run(create("r1"), headers={"x-subject": "ann"})
    response = await server.runs.list_runs(run_service_pb2.ListRunsRequest(project_id=PROJECT))
    expected = identity_pb2.EnrichedIdentity(user=identity_pb2.User(id={"subject": "ann"}))
    assert response.runs[0].action.metadata.executed_by == expected
