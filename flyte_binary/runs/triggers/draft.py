"""A trigger as somebody wants it, checked before anything is looked up or written."""

from __future__ import annotations

from dataclasses import dataclass

from flyteidl2.common import identifier_pb2, run_pb2
from flyteidl2.task import common_pb2, task_definition_pb2
from flyteidl2.trigger import trigger_definition_pb2, trigger_service_pb2

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import RunId, TaskId, TriggerId
from flyte_binary.domain.names import check_text, cut
from flyte_binary.domain.schedules import schedule_from_proto
from flyte_binary.runs.artifacts.partitions import KEY_LIMIT
from flyte_binary.runs.artifacts.requests import check_artifact_name
from flyte_binary.runs.order import URI_LIMIT, check_run_spec
from flyte_binary.storage.store import ObjectStore

DESCRIPTION_LIMIT_BYTES = 255
"""Of a trigger that comes with a task; longer ones are cut, as the task's own are."""

_EXPRESSION_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class TriggerDraft:
    id: TriggerId
    spec: trigger_definition_pb2.TriggerSpec
    automation: common_pb2.TriggerAutomationSpec

    @property
    def task(self) -> TaskId:
        return TaskId(self.id.project, self.id.domain, self.id.task_name, self.spec.task_version)


def draft_from_request(request: trigger_service_pb2.DeployTriggerRequest, store: ObjectStore) -> TriggerDraft:
    """Raises `InvalidArgument` naming the field."""
    trigger = trigger_id_from(request.name)
    if not request.HasField("spec"):
        raise InvalidArgument("spec is required")
    check_text("spec.task_version", request.spec.task_version, required=True)
    check_text("spec.description", request.spec.description, limit=URI_LIMIT)
    return _draft(trigger, request.spec, request.automation_spec, store)


def draft_of_task(task: TaskId, trigger: task_definition_pb2.TaskTrigger, store: ObjectStore) -> TriggerDraft:
    """Of a trigger that comes with the deployment of `task`. Raises `InvalidArgument` naming the field."""
    check_text("triggers: name", trigger.name, required=True)
    check_text(f"triggers[{trigger.name!r}].spec.description", trigger.spec.description, limit=URI_LIMIT)
    spec = trigger_definition_pb2.TriggerSpec(
        active=trigger.spec.active,
        task_version=task.version,
        description=cut(trigger.spec.description, DESCRIPTION_LIMIT_BYTES),
    )
    if trigger.spec.HasField("run_spec"):
        spec.run_spec.CopyFrom(trigger.spec.run_spec)
    match trigger.spec.WhichOneof("input_wrapper"):
        case "inputs":
            spec.inputs.CopyFrom(trigger.spec.inputs)
        case "offloaded_input_data":
            spec.offloaded_input_data.CopyFrom(trigger.spec.offloaded_input_data)
        case _:
            pass
    trigger_id = TriggerId(task.project, task.domain, task.name, trigger.name)
    return _draft(trigger_id, spec, trigger.automation_spec, store)


def trigger_id_from(name: identifier_pb2.TriggerName, field: str = "name") -> TriggerId:
    check_trigger_name(name, field, task_required=True)
    return TriggerId.from_proto(name)


def check_trigger_name(name: identifier_pb2.TriggerName, field: str, *, task_required: bool) -> None:
    check_text(f"{field}.project", name.project, required=True)
    check_text(f"{field}.domain", name.domain, required=True)
    check_text(f"{field}.task_name", name.task_name, required=task_required)
    check_text(f"{field}.name", name.name, required=True)


def _draft(
    trigger: TriggerId,
    spec: trigger_definition_pb2.TriggerSpec,
    automation: common_pb2.TriggerAutomationSpec,
    store: ObjectStore,
) -> TriggerDraft:
    if spec.WhichOneof("input_wrapper") == "offloaded_input_data":
        _check_offloaded(spec.offloaded_input_data, store)
    run_spec = type(spec.run_spec)()
    run_spec.CopyFrom(spec.run_spec)
    check_run_spec(run_spec, RunId(trigger.project, trigger.domain, ""))
    return TriggerDraft(trigger, spec, _checked_automation(automation))


def _check_offloaded(offloaded: run_pb2.OffloadedInputData, store: ObjectStore) -> None:
    check_text("spec.offloaded_input_data.uri", offloaded.uri, required=True, limit=URI_LIMIT)
    check_text("spec.offloaded_input_data.inputs_hash", offloaded.inputs_hash)
    if not store.covers(offloaded.uri):
        raise InvalidArgument(
            f"spec.offloaded_input_data.uri {offloaded.uri!r} is outside the object store, {store.base_uri}"
        )


def _checked_automation(automation: common_pb2.TriggerAutomationSpec) -> common_pb2.TriggerAutomationSpec:
    """A copy whose type says what it holds."""
    checked = common_pb2.TriggerAutomationSpec()
    checked.CopyFrom(automation)
    match automation.WhichOneof("automation"):
        case "schedule":
            checked.type = common_pb2.TYPE_SCHEDULE
            _check_schedule(checked.schedule)
        case "artifact":
            checked.type = common_pb2.TYPE_ARTIFACT
            _check_artifact(checked.artifact)
        case _:
            if automation.type in (common_pb2.TYPE_SCHEDULE, common_pb2.TYPE_ARTIFACT):
                raise InvalidArgument("automation_spec: its type asks for a schedule or an artifact, and there is none")
            checked.type = common_pb2.TYPE_NONE
    return checked


def _check_schedule(schedule: common_pb2.Schedule) -> None:
    field = "automation_spec.schedule"
    check_text(f"{field}.kickoff_time_input_arg", schedule.kickoff_time_input_arg)
    check_text(f"{field}.cron.expression", schedule.cron.expression, limit=_EXPRESSION_LIMIT)
    check_text(f"{field}.cron.timezone", schedule.cron.timezone)
    check_text(f"{field}.cron_expression", schedule.cron_expression, limit=_EXPRESSION_LIMIT)
    schedule_from_proto(schedule, anchor=0)


def _check_artifact(watched: common_pb2.ArtifactTrigger) -> None:
    field = "automation_spec.artifact"
    check_artifact_name(f"{field}.artifact_name", watched.artifact_name)
    check_text(f"{field}.version", watched.version)
    check_text(f"{field}.input_arg", watched.input_arg)
    for key, value in watched.partitions.items():
        check_text(f"{field}.partitions: a key", key, required=True, limit=KEY_LIMIT)
        check_text(f"{field}.partitions[{key!r}]", value, required=True)
    for name, key in watched.partition_input_args.items():
        check_text(f"{field}.partition_input_args: a name", name, required=True)
        check_text(f"{field}.partition_input_args[{name!r}]", key, required=True, limit=KEY_LIMIT)
