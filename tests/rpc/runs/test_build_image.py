"""The server's own task: found, deployed once, started as the SDK does it."""

from __future__ import annotations

from flyteidl2.common.identifier_pb2 import ProjectIdentifier
from flyteidl2.core import literals_pb2
from flyteidl2.task import common_pb2, task_definition_pb2
from flyteidl2.task.task_service_pb2 import GetTaskDetailsRequest, ListTasksRequest, ListVersionsRequest
from flyteidl2.workflow.run_service_pb2 import CreateRunRequest

from flyte_binary.domain.ids import RunId
from flyte_binary.executor.build_image import DOMAIN, NAME, PROJECT, seed_build_image
from tests.rpc.runs.conftest import Server

TASK = task_definition_pb2.TaskName(project=PROJECT, domain=DOMAIN, name=NAME)


async def versions(server: Server) -> list[str]:
    answer = await server.tasks.list_versions(ListVersionsRequest(task_name=TASK))
    return [one.version for one in answer.versions]


async def test_it_is_deployed_once_however_often_a_server_starts(server: Server) -> None:
    for at in (1, 2):
        await server.database.write(lambda tx, at=at: seed_build_image(tx, at))

    (version,) = await versions(server)
    task = task_definition_pb2.TaskIdentifier(project=PROJECT, domain=DOMAIN, name=NAME, version=version)
    details = (await server.tasks.get_task_details(GetTaskDetailsRequest(task_id=task))).details
    template = details.spec.task_template
    assert template.id.version == version
    assert [one.key for one in template.interface.inputs.variables] == ["spec", "context", "target_image"]
    assert details.metadata.deployed_at.ToMicroseconds() == 1


async def test_it_is_not_among_the_tasks_of_a_users_project(server: Server) -> None:
    await server.database.write(lambda tx: seed_build_image(tx, 1))
    project = ProjectIdentifier(name="flytesnacks", domain="development")

    assert not (await server.tasks.list_tasks(ListTasksRequest(project_id=project))).tasks


async def test_a_run_of_it_belongs_to_the_project_of_the_one_who_asks(server: Server) -> None:
    await server.database.write(lambda tx: seed_build_image(tx, 1))
    (version,) = await versions(server)
    text = literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(string_value="x")))
    inputs = common_pb2.Inputs(
        literals=[common_pb2.NamedLiteral(name=name, value=text) for name in ("spec", "target_image")]
    )
    answer = await server.runs.create_run(
        CreateRunRequest(
            project_id=ProjectIdentifier(name="flytesnacks", domain="development"),
            task_id=task_definition_pb2.TaskIdentifier(project=PROJECT, domain=DOMAIN, name=NAME, version=version),
            inputs=inputs,
        )
    )

    run = RunId.from_proto(answer.run.action.id.run)
    assert (run.project, run.domain) == ("flytesnacks", "development")
    row = await server.database.read(lambda tx: tx.actions.get(run.root()))
    assert row is not None and row.task_type == "build-image"
