"""Requests like those of the SDK: a task specification of the usual size, children below a run's root."""

from __future__ import annotations

import secrets
from pathlib import Path

from flyteidl2.actions import actions_service_pb2
from flyteidl2.common import identifier_pb2, run_pb2
from flyteidl2.core import identifier_pb2 as core_identifier_pb2
from flyteidl2.core import interface_pb2, tasks_pb2, types_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2, run_service_pb2

from benchmarks.client import Connection

PROJECT, DOMAIN = "flytesnacks", "development"
CREATE_RUN = "flyteidl2.workflow.RunService/CreateRun"
ENQUEUE = "flyteidl2.actions.ActionsService/Enqueue"
WATCH_FOR_UPDATES = "flyteidl2.actions.ActionsService/WatchForUpdates"

_ARGUMENTS = (
    *("a0", "--inputs", "{{.input}}", "--outputs-path", "{{.outputPrefix}}", "--version", "{{.version}}"),
    *("--raw-data-path", "{{.rawOutputDataPrefix}}", "--checkpoint-path", "{{.checkpointOutputPrefix}}"),
    *("--prev-checkpoint", "{{.prevCheckpointPrefix}}", "--run-name", "{{.runName}}", "--name", "{{.actionName}}"),
    *("--run-start-time", "{{.runStartTime}}", "--image-cache", "H4sI" + "A" * 300, "--tgz", "/store/fast.tar.gz"),
    *("--dest", ".", "--resolver", "flyte._internal.resolvers.default.DefaultTaskResolver", "mod", "leaf"),
)


def task_spec(name: str = "bench.leaf") -> task_definition_pb2.TaskSpec:
    identifier = core_identifier_pb2.Identifier(project=PROJECT, domain=DOMAIN, name=name, version="v1")
    number = types_pb2.LiteralType(simple=types_pb2.INTEGER)
    variables = interface_pb2.VariableMap(
        variables=[interface_pb2.VariableEntry(key="i", value=interface_pb2.Variable(type=number))]
    )
    template = tasks_pb2.TaskTemplate(
        id=identifier,
        type="python",
        interface=interface_pb2.TypedInterface(inputs=variables, outputs=variables),
        container=tasks_pb2.Container(image="ghcr.io/flyteorg/flyte:py3.11-v2.12.1", args=_ARGUMENTS),
    )
    return task_definition_pb2.TaskSpec(task_template=template, short_name=name.rpartition(".")[2])


def run_id(name: str) -> identifier_pb2.RunIdentifier:
    return identifier_pb2.RunIdentifier(org="local", project=PROJECT, domain=DOMAIN, name=name)


def create_run_request(store: Path, name: str = "") -> run_service_pb2.CreateRunRequest:
    """With inputs in the store already, as the SDK sends it."""
    return run_service_pb2.CreateRunRequest(
        run_id=run_id(name or f"r{secrets.token_hex(8)}"),
        task_spec=task_spec("bench.main"),
        offloaded_input_data=run_pb2.OffloadedInputData(uri=f"{store}/inputs/bench/inputs.pb", inputs_hash="h"),
    )


async def create_run(port: int, store: Path) -> identifier_pb2.RunIdentifier:
    connection = await Connection(port).open()
    request = create_run_request(store)
    await connection.call(CREATE_RUN, request, run_service_pb2.CreateRunResponse)
    connection.close()
    return request.run_id


def child_id(run: identifier_pb2.RunIdentifier, name: str) -> identifier_pb2.ActionIdentifier:
    return identifier_pb2.ActionIdentifier(run=run, name=name)


class Children:
    """Makes Enqueue requests below the root of one run."""

    def __init__(self, run: identifier_pb2.RunIdentifier, store: Path, spec: task_definition_pb2.TaskSpec) -> None:
        self.run = run
        self._base = f"{store}/{run.project}/{run.domain}/{run.name}"
        self._task = run_definition_pb2.TaskAction(spec=spec)
        self._task.id.name, self._task.id.version = spec.task_template.id.name, spec.task_template.id.version
        self._task.id.project, self._task.id.domain = PROJECT, DOMAIN

    def request(self, name: str, input_uri: str = "") -> bytes:
        action = actions_service_pb2.Action(
            action_id=child_id(self.run, name),
            parent_action_name="a0",
            input_uri=input_uri or f"{self._base}/{name}/inputs.pb",
            run_output_base=self._base,
            task=self._task,
        )
        return actions_service_pb2.EnqueueRequest(action=action).SerializeToString()
