"""Requests as the SDK sends them."""

from __future__ import annotations

from flyteidl2.common import identifier_pb2, run_pb2
from flyteidl2.core import identifier_pb2 as core_identifier_pb2
from flyteidl2.core import interface_pb2, literals_pb2, tasks_pb2, types_pb2
from flyteidl2.task import common_pb2, environment_pb2, task_definition_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.workflow import run_service_pb2

PROJECT = identifier_pb2.ProjectIdentifier(organization="127", domain="development", name="flytesnacks")
OFFLOADED = run_pb2.OffloadedInputData(uri="/store/uploads/inputs/abc", inputs_hash="hash")


def run_id(name: str) -> identifier_pb2.RunIdentifier:
    return identifier_pb2.RunIdentifier(org="127", project="flytesnacks", domain="development", name=name)


def action_id(run: str, name: str = "a0") -> identifier_pb2.ActionIdentifier:
    return identifier_pb2.ActionIdentifier(run=run_id(run), name=name)


def task_id(name: str = "env.hello", version: str = "v1") -> task_definition_pb2.TaskIdentifier:
    return task_definition_pb2.TaskIdentifier(
        org="127", project="flytesnacks", domain="development", name=name, version=version
    )


def integer(value: int) -> literals_pb2.Literal:
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(integer=value)))


def inputs(**values: int) -> common_pb2.Inputs:
    return common_pb2.Inputs(
        literals=[common_pb2.NamedLiteral(name=name, value=integer(value)) for name, value in values.items()]
    )


def task_spec(
    name: str = "env.hello", version: str = "v1", *, cached: bool = False, sdk: str = "2.12.1"
) -> task_definition_pb2.TaskSpec:
    template = tasks_pb2.TaskTemplate(
        id=core_identifier_pb2.Identifier(
            resource_type=core_identifier_pb2.TASK,
            project="flytesnacks",
            domain="development",
            name=name,
            version=version,
            org="127",
        ),
        type="python",
        metadata=tasks_pb2.TaskMetadata(
            discoverable=cached,
            discovery_version="d1",
            runtime=tasks_pb2.RuntimeMetadata(type=tasks_pb2.RuntimeMetadata.FLYTE_SDK, version=sdk, flavor="python"),
        ),
        interface=interface_pb2.TypedInterface(
            inputs=interface_pb2.VariableMap(
                variables=[
                    interface_pb2.VariableEntry(
                        key="x",
                        value=interface_pb2.Variable(type=types_pb2.LiteralType(simple=types_pb2.INTEGER)),
                    )
                ]
            )
        ),
        container=tasks_pb2.Container(image="image", args=["a0"]),
    )
    environment, _, short_name = name.rpartition(".")
    return task_definition_pb2.TaskSpec(
        task_template=template,
        short_name=short_name,
        environment=environment_pb2.Environment(name=environment),
    )


def create(
    name: str | None = None,
    *,
    spec: task_definition_pb2.TaskSpec | None = None,
    run_spec: task_run_pb2.RunSpec | None = None,
) -> run_service_pb2.CreateRunRequest:
    """With offloaded inputs, under a name of its own or, with None, of the server's choice."""
    request = run_service_pb2.CreateRunRequest(
        task_spec=spec or task_spec(), offloaded_input_data=OFFLOADED, run_spec=run_spec
    )
    if name is None:
        request.project_id.CopyFrom(PROJECT)
    else:
        request.run_id.CopyFrom(run_id(name))
    return request
