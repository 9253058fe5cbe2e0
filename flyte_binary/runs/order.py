"""A CreateRun request, checked: what is asked for, before anything is looked up or written."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flyteidl2.common import identifier_pb2, run_pb2
from flyteidl2.task import common_pb2, task_definition_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.workflow import run_service_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from flyte_binary.db.artifacts import ArtifactRow
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import ProjectId, RunId, TaskId, TriggerId
from flyte_binary.domain.names import check_run_name, check_text, new_run_name
from flyte_binary.domain.timestamps import is_time
from flyte_binary.runs.requests import project_id_from, task_id_from

URI_LIMIT = 4096
_ABSOLUTE = re.compile(r"/|[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FiredBy:
    """The trigger that a run is made by, as it was then."""

    trigger: TriggerId
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    run: RunId
    task: TaskId | None = None
    """A deployed task; else `spec` or `trigger` is set."""

    spec: task_definition_pb2.TaskSpec | None = None
    trigger: identifier_pb2.TriggerName | None = None
    fired_by: FiredBy | None = None
    """Known, as is `task`, once the order has been completed by its trigger."""

    artifact: ArtifactRow | None = None
    """The version that fired the trigger."""

    inputs: common_pb2.Inputs | None = None
    """Inputs that are not in the store yet; None if `offloaded` says where they are, or the trigger does."""

    offloaded: run_pb2.OffloadedInputData | None = None
    run_spec: task_run_pb2.RunSpec
    source: int
    start_time: Timestamp | None = None


def order_from(request: run_service_pb2.CreateRunRequest) -> RunOrder:
    """Raises `InvalidArgument` naming the field. The request is left alone; parts of it are shared."""
    run = _run_of(request)
    run_spec = task_run_pb2.RunSpec()
    run_spec.CopyFrom(request.run_spec)
    check_run_spec(run_spec, run)
    _check_time("run_start_time", request.run_start_time)
    offloaded = request.offloaded_input_data if request.HasField("offloaded_input_data") else None
    if offloaded is not None:
        check_text("offloaded_input_data.uri", offloaded.uri, required=True, limit=URI_LIMIT)
    kind = request.WhichOneof("task")
    if kind is None:
        raise InvalidArgument("task is required: one of task_id, task_spec or trigger_name")
    if kind == "trigger_name":
        _check_trigger(request.trigger_name)
    left_to_trigger = kind == "trigger_name" and not request.HasField("inputs")
    return RunOrder(
        run=run,
        task=task_id_from(request) if kind == "task_id" else None,
        spec=_checked_spec(request.task_spec) if kind == "task_spec" else None,
        trigger=request.trigger_name if kind == "trigger_name" else None,
        inputs=None if offloaded is not None or left_to_trigger else request.inputs,
        offloaded=offloaded,
        run_spec=run_spec,
        source=request.source,
        start_time=request.run_start_time if request.HasField("run_start_time") else None,
    )


def task_id_of(spec: task_definition_pb2.TaskSpec, scope: ProjectId) -> TaskId:
    """What the template calls itself; the run's project and domain where it leaves them out."""
    template_id = spec.task_template.id
    return TaskId(
        template_id.project or scope.project,
        template_id.domain or scope.domain,
        template_id.name,
        template_id.version,
    )


def _run_of(request: run_service_pb2.CreateRunRequest) -> RunId:
    match request.WhichOneof("id"):
        case "run_id":
            check_text("run_id.project", request.run_id.project, required=True)
            check_text("run_id.domain", request.run_id.domain, required=True)
            check_run_name(request.run_id.name)
            return RunId.from_proto(request.run_id)
        case "project_id":
            project = project_id_from(request.project_id)
            return RunId(project.project, project.domain, new_run_name())
        case _:
            raise InvalidArgument("id is required: run_id, or project_id for a name of the server's choice")


def _check_trigger(name: identifier_pb2.TriggerName) -> None:
    """A trigger may be named without its task."""
    for part in ("project", "domain", "name"):
        check_text(f"trigger_name.{part}", getattr(name, part), required=True)
    check_text("trigger_name.task_name", name.task_name)


def _checked_spec(spec: task_definition_pb2.TaskSpec) -> task_definition_pb2.TaskSpec:
    if not spec.HasField("task_template"):
        raise InvalidArgument("task_spec.task_template is required")
    template = spec.task_template
    for name in ("project", "domain", "version"):
        check_text(f"task_spec.task_template.id.{name}", getattr(template.id, name))
    check_text("task_spec.task_template.id.name", template.id.name, required=True)
    check_text("task_spec.task_template.type", template.type)
    check_text("task_spec.short_name", spec.short_name)
    check_text("task_spec.environment.name", spec.environment.name)
    return spec


def check_run_spec(run_spec: task_run_pb2.RunSpec, run: RunId) -> None:
    for key, value in run_spec.labels.values.items():
        check_text("run_spec.labels: a key", key, required=True)
        check_text(f"run_spec.labels[{key!r}]", value, limit=URI_LIMIT)
    _check_time("run_spec.run_start_time", run_spec.run_start_time)
    _check_location("run_spec.run_base_dir", run_spec.run_base_dir)
    _check_location("run_spec.raw_data_storage.raw_data_prefix", run_spec.raw_data_storage.raw_data_prefix)
    if run_spec.max_action_concurrency == 1:
        raise InvalidArgument(
            "run_spec.max_action_concurrency is 1, which leaves no room for a child beside its parent: "
            "use 0 for no limit, or at least 2"
        )
    if run_spec.HasField("relation"):
        _complete_relation(run_spec.relation, run)


def _check_time(field: str, stamp: Timestamp) -> None:
    if not is_time(stamp):
        raise InvalidArgument(f"{field} is no time between the years 1 and 9999")


def _check_location(field: str, uri: str) -> None:
    check_text(field, uri, limit=URI_LIMIT)
    if uri and not _ABSOLUTE.match(uri):
        raise InvalidArgument(f"{field} {uri!r} must be an absolute path or a URI with a scheme")


def _complete_relation(relation: run_pb2.Relation, run: RunId) -> None:
    """The other run is in the same project and domain unless it says otherwise."""
    if relation.relation_type == run_pb2.RELATION_TYPE_UNSPECIFIED:
        raise InvalidArgument("run_spec.relation.relation_type is required")
    other = relation.related_to
    check_text("run_spec.relation.related_to.name", other.name, required=True)
    other.project = other.project or run.project
    other.domain = other.domain or run.domain
