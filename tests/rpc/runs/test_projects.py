"""Projects: create, get, list, update, and what the start seeds."""

from __future__ import annotations

import pytest
from connectrpc.code import Code
from flyteidl2.common import list_pb2
from flyteidl2.project import project_service_pb2 as pb
from flyteidl2.task import run_pb2

from flyte_binary.runs.projects.service import seed_projects
from tests.rpc.runs.conftest import DOMAINS, Server
from tests.rpc.runs.test_create import refused


async def create(server: Server, identifier: str, **fields: object) -> None:
    project = pb.Project(id=identifier, **fields)  # type: ignore[arg-type]  # its fields
    await server.projects.create_project(pb.CreateProjectRequest(project=project))
    server.clock.advance(seconds=1)


async def listed(server: Server, filters: str = "", **more: object) -> list[str]:
    request = pb.ListProjectsRequest(filters=filters, **more)  # type: ignore[arg-type]  # its fields
    response = await server.projects.list_projects(request)
    return [project.id for project in response.projects.projects]


async def test_a_project_is_got_as_it_was_created_with_the_configured_domains(server: Server) -> None:
    labels = run_pb2.Labels(values={"team": "ml"})
    await create(server, "p1", name="One", description="d", labels=labels)
    project = (await server.projects.get_project(pb.GetProjectRequest(id="p1"))).project

    assert (project.id, project.name, project.description, project.labels) == ("p1", "One", "d", labels)
    assert [domain.id for domain in project.domains] == list(DOMAINS)
    assert project.state == pb.PROJECT_STATE_ACTIVE
    assert project.org == ""


async def test_a_second_project_of_that_id_is_refused(server: Server) -> None:
    call = server.projects.create_project(pb.CreateProjectRequest(project=pb.Project(id="flytesnacks")))
    assert "flytesnacks" in await refused(call, Code.ALREADY_EXISTS)


async def test_an_update_replaces_everything_but_the_id(server: Server) -> None:
    await create(server, "p1", name="One", description="d")
    archived = pb.Project(id="p1", name="Two", state=pb.PROJECT_STATE_ARCHIVED)
    await server.projects.update_project(pb.UpdateProjectRequest(project=archived))
    project = (await server.projects.get_project(pb.GetProjectRequest(id="p1"))).project

    assert (project.name, project.description, project.state) == ("Two", "", pb.PROJECT_STATE_ARCHIVED)


async def test_what_does_not_exist_is_not_found(server: Server) -> None:
    for call in (
        server.projects.get_project(pb.GetProjectRequest(id="nosuch")),
        server.projects.update_project(pb.UpdateProjectRequest(project=pb.Project(id="nosuch"))),
    ):
        assert "nosuch" in await refused(call, Code.NOT_FOUND)


@pytest.mark.parametrize(
    "project",
    [
        pb.Project(),
        pb.Project(id="../x"),
        pb.Project(id="a/b"),
        pb.Project(id="x" * 64),
        pb.Project(id="p", name="\0"),
        pb.Project(id="p", description="x" * 301),
        pb.Project(id="p", state=77),  # type: ignore[arg-type]  # no state
    ],
)
async def test_a_wrong_project_is_refused_with_the_field(server: Server, project: pb.Project) -> None:
    call = server.projects.create_project(pb.CreateProjectRequest(project=project))
    assert "project." in await refused(call, Code.INVALID_ARGUMENT)


async def test_without_an_id_there_is_nothing_to_get(server: Server) -> None:
    assert "id" in await refused(server.projects.get_project(pb.GetProjectRequest()), Code.INVALID_ARGUMENT)


async def test_archived_projects_are_left_out_unless_a_filter_asks(server: Server) -> None:
    await create(server, "old", state=pb.PROJECT_STATE_ARCHIVED)
    await create(server, "generated", state=pb.PROJECT_STATE_SYSTEM_GENERATED)

    assert await listed(server) == ["flytesnacks", "generated"]
    assert await listed(server, "eq(state, 1)") == ["old"]
    assert await listed(server, "eq(state, archived)") == ["old"]
    assert await listed(server, "eq(state, 0)") == ["flytesnacks"]
    assert await listed(server, "ne(state, 9)") == ["flytesnacks", "old", "generated"]


async def test_projects_are_filtered_by_terms_that_must_all_hold(server: Server) -> None:
    await create(server, "ml-a", name="A+B")
    await create(server, "ml-b", name="B")

    assert await listed(server, "eq(state, 0)+contains(identifier,ml-)") == ["ml-a", "ml-b"]
    assert await listed(server, " EQ(state,0) + value_in(identifier, ml-b ; flytesnacks)") == ["flytesnacks", "ml-b"]
    assert await listed(server, "contains(name,A+B)") == ["ml-a"]
    assert await listed(server, "contains(name,%)") == []


async def test_projects_come_in_pages_in_the_order_that_is_asked_for(server: Server) -> None:
    for name in ("a", "c", "b"):
        await create(server, name)
    sort = list_pb2.Sort(key="identifier", direction=list_pb2.Sort.DESCENDING)
    first = (await server.projects.list_projects(pb.ListProjectsRequest(limit=3, sort_by=sort))).projects
    await create(server, "d")
    second = pb.ListProjectsRequest(limit=3, sort_by=sort, token=first.token)
    last = (await server.projects.list_projects(second)).projects

    assert [project.id for project in first.projects] == ["flytesnacks", "c", "b"]
    assert [project.id for project in last.projects] == ["a"]
    assert last.token == ""


@pytest.mark.parametrize(
    ("request_made", "named"),
    [
        (pb.ListProjectsRequest(filters="bogus"), "bogus"),
        (pb.ListProjectsRequest(filters="eq(nosuch,1)"), "nosuch"),
        (pb.ListProjectsRequest(filters="eq(state,x)"), "state"),
        (pb.ListProjectsRequest(token="abc"), "token"),
        (pb.ListProjectsRequest(token="-1"), "token"),
        (pb.ListProjectsRequest(sort_by=list_pb2.Sort(key="nosuch")), "nosuch"),
    ],
)
async def test_a_wrong_list_request_is_refused(
    server: Server, request_made: pb.ListProjectsRequest, named: str
) -> None:
    assert named in await refused(server.projects.list_projects(request_made), Code.INVALID_ARGUMENT)


async def test_seeding_creates_what_is_missing_and_leaves_the_rest(server: Server) -> None:
    changed = pb.Project(id="flytesnacks", name="Mine")
    await server.projects.update_project(pb.UpdateProjectRequest(project=changed))

    made = await server.database.write(lambda tx: seed_projects(tx, ["flytesnacks", "", "extra"], 1))
    assert made == ["extra"]
    assert (await server.projects.get_project(pb.GetProjectRequest(id="flytesnacks"))).project.name == "Mine"
    assert (await server.projects.get_project(pb.GetProjectRequest(id="extra"))).project.name == "extra"
