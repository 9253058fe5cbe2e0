"""Reports as the SDK makes them (`flyte/_persistence/_remote_reporter.py`)."""

from __future__ import annotations

from flyteidl2.common import phase_pb2
from flyteidl2.core import interface_pb2, types_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2, run_service_pb2
from flyteidl2.workflow import tracked_run_service_pb2 as pb

from flyte_binary.domain.timestamps import micros_to_proto
from tests.rpc.runs.messages import action_id, run_id, task_spec
from tests.rpc.tracked.conftest import World

RUN = "local-1234abcd"
INPUTS = f"/store/uploads/flytesnacks/development/tracked-runs/{RUN}/a0/inputs.pb"

RUNNING, SUCCEEDED, FAILED, ABORTED = (
    phase_pb2.ACTION_PHASE_RUNNING,
    phase_pb2.ACTION_PHASE_SUCCEEDED,
    phase_pb2.ACTION_PHASE_FAILED,
    phase_pb2.ACTION_PHASE_ABORTED,
)


def creation(name: str = RUN, **labels: str) -> pb.CreateTrackedRunRequest:
    request = pb.CreateTrackedRunRequest(run_id=run_id(name), task_spec=task_spec(), labels=labels)
    request.offloaded_input_data.uri = INPUTS
    request.offloaded_input_data.inputs_hash = "h"
    return request


def update(
    world: World,
    action: str,
    phase: phase_pb2.ActionPhase,
    version: int,
    *,
    attempt: int = 1,
    parent: str = "",
    error: str = "",
    task: str = "",
    trace: str = "",
    outputs: str = "",
) -> pb.TrackedActionUpdate:
    """The time is now by the world's clock; `task` or `trace` make it a first report."""
    now = micros_to_proto(world.clock.now())
    event = run_definition_pb2.ActionEvent(
        id=action_id(RUN, action),
        attempt=attempt,
        phase=phase,
        version=version,
        updated_time=now,
        reported_time=now,
    )
    if error:
        event.error_info.message = error
        event.error_info.kind = run_definition_pb2.ErrorInfo.KIND_USER
    if outputs:
        event.outputs.output_uri = outputs
    made = pb.TrackedActionUpdate(event=event, parent_name=parent)
    made.status.phase = phase
    made.status.attempts = attempt
    if task:
        made.task.spec.CopyFrom(task_spec(task))
    if trace:
        made.trace.CopyFrom(run_definition_pb2.TraceAction(name=trace, spec=trace_spec()))
    return made


def trace_spec() -> task_definition_pb2.TraceSpec:
    variable = interface_pb2.Variable(type=types_pb2.LiteralType(simple=types_pb2.INTEGER))
    entry = interface_pb2.VariableEntry(key="x", value=variable)
    return task_definition_pb2.TraceSpec(
        interface=interface_pb2.TypedInterface(inputs=interface_pb2.VariableMap(variables=[entry]))
    )


async def report(world: World, *updates: pb.TrackedActionUpdate) -> list[int]:
    """The code of each update."""
    response = await world.tracked.report_actions(
        pb.ReportTrackedActionsRequest(run_id=run_id(RUN), updates=list(updates))
    )
    return [status.code for status in response.statuses]


async def details(world: World, action: str = "a0") -> run_definition_pb2.ActionDetails:
    """As any client of RunService sees them."""
    response = await world.runs.get_action_details(
        run_service_pb2.GetActionDetailsRequest(action_id=action_id(RUN, action))
    )
    return response.details
