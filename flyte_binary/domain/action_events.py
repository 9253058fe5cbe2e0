"""Events of attempts as the executor writes them: one for each change of phase.

The details view (`ActionDetails.attempts`) is assembled from these and nothing else, and external
executors record the same message through EventsProxy and InternalRunService.
"""

from __future__ import annotations

from flyteidl2.core import execution_pb2
from flyteidl2.task import common_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.domain import locations
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.domain.wire_enums import cache_status_to_wire, phase_to_wire

CONTAINER = "main"
"""The one container of a local attempt, as log clients see it."""

_KINDS = {
    execution_pb2.ExecutionError.UNKNOWN: run_definition_pb2.ErrorInfo.KIND_UNSPECIFIED,
    execution_pb2.ExecutionError.USER: run_definition_pb2.ErrorInfo.KIND_USER,
    execution_pb2.ExecutionError.SYSTEM: run_definition_pb2.ErrorInfo.KIND_SYSTEM,
}


def make_event(
    action: ActionId,
    attempt: int,
    phase: Phase,
    *,
    at: int,
    version: int = 0,
    prefix: str = "",
    error: execution_pb2.ExecutionError | None = None,
    has_logs: bool = False,
    has_report: bool = False,
    cache_status: int = 0,
    message: str = "",
) -> run_definition_pb2.ActionEvent:
    """`at` is in microseconds; `prefix` is the attempt's folder, empty before it is known."""
    event = run_definition_pb2.ActionEvent(
        id=action.to_proto(),
        attempt=attempt,
        phase=phase_to_wire(phase),
        version=version,
        updated_time=micros_to_proto(at),
        reported_time=micros_to_proto(at),
        cache_status=cache_status_to_wire(cache_status),
    )
    if prefix:
        event.outputs.CopyFrom(_outputs(prefix, phase, has_report=has_report))
    if error is not None:
        event.error_info.CopyFrom(error_info(error))
    if has_logs:
        event.log_context.CopyFrom(log_context(action, attempt))
    if message:
        event.cluster_events.add(occurred_at=micros_to_proto(at), message=message)
    return event


def error_info(error: execution_pb2.ExecutionError) -> run_definition_pb2.ErrorInfo:
    """The error as run views show it."""
    return run_definition_pb2.ErrorInfo(message=error.message, code=error.code, kind=_KINDS[error.kind])


def log_context(action: ActionId, attempt: int) -> execution_pb2.LogContext:
    """A local attempt looks like a pod of one container to whoever asks for its logs."""
    name = f"{action.run}-{action.name}-{attempt - 1}"
    pod = execution_pb2.PodLogContext(pod_name=name, primary_container_name=CONTAINER)
    pod.containers.add(container_name=CONTAINER)
    return execution_pb2.LogContext(primary_pod_name=name, pods=[pod])


def _outputs(prefix: str, phase: Phase, *, has_report: bool) -> common_pb2.OutputReferences:
    references = common_pb2.OutputReferences()
    if phase in (Phase.SUCCEEDED, Phase.RECOVERED):
        references.output_uri = locations.join(prefix, locations.OUTPUTS)
    if has_report:
        references.report_uri = locations.join(prefix, locations.REPORT)
    return references
