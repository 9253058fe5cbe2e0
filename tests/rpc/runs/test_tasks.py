"""Deployed tasks: deployment, details, lists."""

from __future__ import annotations

from typing import Any

import pytest
from connectrpc.code import Code
from flyteidl2.common import list_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.task import task_service_pb2 as pb

from tests.rpc.runs.conftest import Server
from tests.rpc.runs.messages import PROJECT, task_id, task_spec
from tests.rpc.runs.test_create import refused
from tests.rpc.runs.test_lists import by, where


async def deploy(server: Server, name: str = "env.hello", version: str = "v1", **headers: str) -> None:
    request = pb.DeployTaskRequest(task_id=task_id(name, version), spec=task_spec(name, version))
    await server.tasks.deploy_task(request, headers=headers)
    server.clock.advance(seconds=1)


async def listed(server: Server, *filters: list_pb2.Filter, **more: Any) -> pb.ListTasksResponse:
    sorting = more.pop("sort", by("name"))
    request = list_pb2.ListRequest(filters=filters, sort_by_fields=sorting, limit=more.pop("limit", 0))
    request.token = more.pop("token", "")
    return await server.tasks.list_tasks(pb.ListTasksRequest(request=request, project_id=PROJECT, **more))


def versions(response: pb.ListTasksResponse) -> list[tuple[str, str]]:
    return [(task.task_id.name, task.task_id.version) for task in response.tasks]


async def test_a_deployed_task_is_found_with_its_spec(server: Server) -> None:
    at = server.clock.now()
    await deploy(server, **{"x-subject": "ann"})
    details = (await server.tasks.get_task_details(pb.GetTaskDetailsRequest(task_id=task_id()))).details

    assert (details.task_id.org, details.task_id.name, details.task_id.version) == ("", "env.hello", "v1")
    assert details.spec == task_spec()
    assert (details.metadata.short_name, details.metadata.environment_name) == ("hello", "env")
    assert details.metadata.deployed_at.ToMicroseconds() == at
    assert details.metadata.deployed_by.user.id.subject == "ann"


async def test_the_same_version_again_is_replaced_and_keeps_its_first_time(server: Server) -> None:
    at = server.clock.now()
    await deploy(server)
    changed = task_spec()
    changed.documentation.short_description = "new"
    await server.tasks.deploy_task(pb.DeployTaskRequest(task_id=task_id(), spec=changed))
    details = (await server.tasks.get_task_details(pb.GetTaskDetailsRequest(task_id=task_id()))).details

    assert details.spec.documentation.short_description == "new"
    assert details.metadata.short_description == "new"
    assert details.metadata.deployed_at.ToMicroseconds() == at


async def test_long_descriptions_are_cut_between_characters(server: Server) -> None:
    spec = task_spec()
    spec.environment.description = "ä" * 200
    spec.documentation.short_description = "ä" * 200
    spec.documentation.long_description = "ä" * 2000
    await server.tasks.deploy_task(pb.DeployTaskRequest(task_id=task_id(), spec=spec))
    stored = (await server.tasks.get_task_details(pb.GetTaskDetailsRequest(task_id=task_id()))).details.spec

    assert stored.environment.description == "ä" * 127
    assert stored.documentation.short_description == "ä" * 127
    assert stored.documentation.long_description == "ä" * 1024


@pytest.mark.parametrize("field", ["project", "domain", "name", "version"])
async def test_an_incomplete_id_is_named(server: Server, field: str) -> None:
    task = task_id()
    task.ClearField(field)  # type: ignore[arg-type]  # one of its fields
    for call in (
        server.tasks.deploy_task(pb.DeployTaskRequest(task_id=task, spec=task_spec())),
        server.tasks.get_task_details(pb.GetTaskDetailsRequest(task_id=task)),
    ):
        assert f"task_id.{field}" in await refused(call, Code.INVALID_ARGUMENT)


async def test_what_cannot_be_deployed_is_refused(server: Server) -> None:
    no_spec = pb.DeployTaskRequest(task_id=task_id())
    assert "spec.task_template" in await refused(server.tasks.deploy_task(no_spec), Code.INVALID_ARGUMENT)
    no_project = pb.DeployTaskRequest(task_id=task_id(), spec=task_spec())
    no_project.task_id.project = "nosuch"
    assert "nosuch" in await refused(server.tasks.deploy_task(no_project), Code.NOT_FOUND)
    no_domain = pb.DeployTaskRequest(task_id=task_id(), spec=task_spec())
    no_domain.task_id.domain = "nosuch"
    assert "nosuch" in await refused(server.tasks.deploy_task(no_domain), Code.NOT_FOUND)
    unknown = server.tasks.get_task_details(pb.GetTaskDetailsRequest(task_id=task_id()))
    assert "env.hello" in await refused(unknown, Code.NOT_FOUND)


async def test_of_each_task_the_latest_version_is_listed(server: Server) -> None:
    for name, version in (("env.a", "v1"), ("env.b", "v9"), ("env.a", "v2"), ("env.b", "v1")):
        await deploy(server, name, version)

    response = await listed(server)
    assert versions(response) == [("env.a", "v2"), ("env.b", "v1")]
    assert response.tasks[0].HasField("task_summary")
    newest = await listed(server, sort=[])
    assert versions(newest) == [("env.b", "v1"), ("env.a", "v2")]


async def test_the_latest_is_looked_for_among_what_meets_the_filters(server: Server) -> None:
    for version in ("v1", "v2"):
        await deploy(server, "env.a", version)

    assert versions(await listed(server, where("version", "EQUAL", "v1"))) == [("env.a", "v1")]
    assert versions(await listed(server, where("name", "CONTAINS", "env."))) == [("env.a", "v2")]
    assert versions(await listed(server, where("name", "CONTAINS", "env_"))) == []


async def test_totals_stay_on_every_page(server: Server) -> None:
    for number in range(5):
        await deploy(server, f"env.t{number}")
    await deploy(server, "env.t0", "v2")
    await deploy(server, "other.t")
    found: list[tuple[str, str]] = []
    token = ""
    while True:
        response = await listed(server, where("name", "CONTAINS", "env."), limit=2, token=token)
        assert (response.metadata.total, response.metadata.filtered_total) == (6, 5)
        found += versions(response)
        token = response.token
        if not token:
            break

    assert found == [("env.t0", "v2"), ("env.t1", "v1"), ("env.t2", "v1"), ("env.t3", "v1"), ("env.t4", "v1")]
    empty = await listed(server, where("name", "EQUAL", "nosuch"))
    assert (empty.metadata.total, empty.metadata.filtered_total) == (6, 0)


async def test_entrypoints_and_deployers_are_known_filters(server: Server) -> None:
    entry = task_spec("env.main")
    entry.task_template.metadata.is_entrypoint = True
    await server.tasks.deploy_task(pb.DeployTaskRequest(task_id=task_id("env.main"), spec=entry))
    await deploy(server, "env.leaf", **{"x-subject": "ann"})
    known = pb.ListTasksRequest.KnownFilter

    assert versions(await listed(server, known_filters=[known(is_entrypoint=True)])) == [("env.main", "v1")]
    assert versions(await listed(server, known_filters=[known(is_entrypoint=False)])) == [("env.leaf", "v1")]
    assert versions(await listed(server, known_filters=[known(deployed_by="ann")])) == [("env.leaf", "v1")]


async def test_versions_of_a_task_are_listed_newest_first(server: Server) -> None:
    for version in ("v1", "v3", "v2"):
        await deploy(server, "env.a", version)
    await deploy(server, "env.b", "v7")
    name = task_definition_pb2.TaskName(project="flytesnacks", domain="development", name="env.a")
    response = await server.tasks.list_versions(
        pb.ListVersionsRequest(request=list_pb2.ListRequest(limit=2), task_name=name)
    )
    rest = await server.tasks.list_versions(
        pb.ListVersionsRequest(request=list_pb2.ListRequest(limit=2, token=response.token), task_name=name)
    )

    assert [item.version for item in response.versions] == ["v2", "v3"]
    assert [item.version for item in rest.versions] == ["v1"]
    assert rest.token == ""
    assert response.versions[0].HasField("deployed_at")


async def test_versions_of_a_task_that_does_not_exist_are_none(server: Server) -> None:
    name = task_definition_pb2.TaskName(project="flytesnacks", domain="development", name="nosuch")
    assert not (await server.tasks.list_versions(pb.ListVersionsRequest(task_name=name))).versions
    call = server.tasks.list_versions(pb.ListVersionsRequest())
    assert "task_name.project" in await refused(call, Code.INVALID_ARGUMENT)
