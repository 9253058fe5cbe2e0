"""Task messages from the row of a deployed task."""

from __future__ import annotations

from flyteidl2.task import common_pb2, task_definition_pb2

from flyte_binary.db.rows import TaskRow
from flyte_binary.db.trigger_rows import TriggerSummary
from flyte_binary.domain.timestamps import micros_to_proto


def task_of(row: TaskRow, triggers: TriggerSummary | None) -> task_definition_pb2.Task:
    return task_definition_pb2.Task(
        task_id=row.id.to_proto(), metadata=metadata_of(row, triggers), task_summary=task_definition_pb2.TaskSummary()
    )


def metadata_of(row: TaskRow, triggers: TriggerSummary | None) -> task_definition_pb2.TaskMetadata:
    """`triggers` are those of this very version, None if there are none."""
    metadata = task_definition_pb2.TaskMetadata(
        short_name=row.function_name,
        deployed_at=micros_to_proto(row.created_at),
        environment_name=row.environment,
        short_description=row.short_description,
    )
    if row.deployed_by:
        metadata.deployed_by.user.id.subject = row.deployed_by
    if triggers is not None:
        metadata.triggers_summary.CopyFrom(_summary_of(triggers))
    return metadata


def _summary_of(triggers: TriggerSummary) -> task_definition_pb2.TaskTriggersSummary:
    """One trigger is described, several are counted."""
    if triggers.total > 1:
        stats = task_definition_pb2.TaskTriggersSummary.TriggerStats(total=triggers.total, active=triggers.active)
        return task_definition_pb2.TaskTriggersSummary(stats=stats)
    details = task_definition_pb2.TaskTriggersSummary.TriggerDetails(
        name=triggers.name,
        active=triggers.active > 0,
        automation_spec=common_pb2.TriggerAutomationSpec.FromString(triggers.automation_spec),
    )
    return task_definition_pb2.TaskTriggersSummary(details=details)
