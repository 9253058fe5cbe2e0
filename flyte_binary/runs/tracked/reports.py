"""A reported state of one action, checked: what it says, before anything is looked up or written."""

from __future__ import annotations

from dataclasses import dataclass

from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2
from flyteidl2.workflow import tracked_run_service_pb2 as pb
from google.protobuf.timestamp_pb2 import Timestamp

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.domain.names import check_text
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.timestamps import is_time, proto_to_micros
from flyte_binary.rpc.require import require_action_id
from flyte_binary.storage.store import ObjectStore

_LARGEST = 2**31 - 1
"""Of the columns `attempt` and `version`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Times are microseconds since the epoch by the client's clock; None where it does not say."""

    action: ActionId
    parent: str
    group: str
    task: task_definition_pb2.TaskSpec | None
    trace: run_definition_pb2.TraceAction | None
    event: run_definition_pb2.ActionEvent
    """As it is to be recorded."""

    phase: Phase
    attempt: int
    version: int
    cache_status: int
    started_at: int | None
    ended_at: int | None

    @property
    def output_uri(self) -> str:
        return self.event.outputs.output_uri


def report_from(update: pb.TrackedActionUpdate, run: RunId, field: str, store: ObjectStore) -> Report:
    """Raises `InvalidArgument` naming the part of `field`."""
    if not update.HasField("event"):
        raise InvalidArgument(f"{field}.event is required")
    event = run_definition_pb2.ActionEvent()
    event.CopyFrom(update.event)
    action = _action_of(event, run, field)
    _check_event(event, f"{field}.event", store)
    check_text(f"{field}.parent_name", update.parent_name)
    check_text(f"{field}.group", update.group)
    status, kind = update.status, update.WhichOneof("spec")
    ended = status.end_time if status.HasField("end_time") else event.updated_time
    return Report(
        action=action,
        parent=update.parent_name,
        group=update.group,
        task=_task_of(update.task, f"{field}.task") if kind == "task" else None,
        trace=_trace_of(update.trace, f"{field}.trace") if kind == "trace" else None,
        event=event,
        phase=_phase_of(int(event.phase), int(status.phase), field),
        attempt=event.attempt,
        version=event.version,
        cache_status=int(event.cache_status),
        started_at=_micros(status.start_time if status.HasField("start_time") else event.updated_time, field),
        ended_at=_micros(ended, field),
    )


def _action_of(event: run_definition_pb2.ActionEvent, run: RunId, field: str) -> ActionId:
    """The run may be left out of the event, and must not be another one."""
    if not event.id.HasField("run"):
        event.id.run.CopyFrom(run.to_proto())
    action = require_action_id(event.id, f"{field}.event.id")
    if action.run_id != run:
        raise InvalidArgument(f"{field}.event.id.run: the reports are of run {run}, this one is of {action.run_id}")
    event.id.run.org = ""
    return action


def _check_event(event: run_definition_pb2.ActionEvent, field: str, store: ObjectStore) -> None:
    if not 0 < event.attempt <= _LARGEST:
        raise InvalidArgument(f"{field}.attempt: attempts are counted from 1, got {event.attempt}")
    if event.version > _LARGEST:
        raise InvalidArgument(f"{field}.version must be at most {_LARGEST}, got {event.version}")
    for name in ("reported_time", "updated_time"):
        _micros(getattr(event, name), f"{field}.{name}")
    for name in ("output_uri", "report_uri"):
        uri: str = getattr(event.outputs, name)
        check_text(f"{field}.outputs.{name}", uri, limit=4096)
        if uri and not store.covers(uri):
            raise InvalidArgument(f"{field}.outputs.{name} {uri!r} is outside the object store, {store.base_uri}")


def _phase_of(of_event: int, of_status: int, field: str) -> Phase:
    phase = of_status or of_event
    if phase == Phase.UNSPECIFIED or phase not in set(Phase):
        raise InvalidArgument(f"{field}.event.phase is required and must be one of ActionPhase, got {phase}")
    return Phase(phase)


def _task_of(task: run_definition_pb2.TaskAction, field: str) -> task_definition_pb2.TaskSpec:
    if not task.spec.HasField("task_template"):
        raise InvalidArgument(f"{field}.spec.task_template is required")
    template = task.spec.task_template
    for name in ("project", "domain", "name", "version"):
        check_text(f"{field}.spec.task_template.id.{name}", getattr(template.id, name), required=name == "name")
    check_text(f"{field}.spec.task_template.type", template.type)
    check_text(f"{field}.spec.short_name", task.spec.short_name)
    check_text(f"{field}.spec.environment.name", task.spec.environment.name)
    return task.spec


def _trace_of(trace: run_definition_pb2.TraceAction, field: str) -> run_definition_pb2.TraceAction:
    check_text(f"{field}.name", trace.name, required=True)
    return trace


def _micros(stamp: Timestamp, field: str) -> int | None:
    if not stamp.ByteSize():
        return None
    if not is_time(stamp) or stamp.seconds < 0:
        raise InvalidArgument(f"{field}: its times must lie between the years 1970 and 9999")
    return proto_to_micros(stamp)
