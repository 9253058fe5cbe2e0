"""Task messages from the row of a deployed task."""

from __future__ import annotations

from flyteidl2.task import task_definition_pb2

from flyte_binary.db.rows import TaskRow
from flyte_binary.domain.timestamps import micros_to_proto


def task_of(row: TaskRow) -> task_definition_pb2.Task:
    return task_definition_pb2.Task(
        task_id=row.id.to_proto(), metadata=metadata_of(row), task_summary=task_definition_pb2.TaskSummary()
    )


def metadata_of(row: TaskRow) -> task_definition_pb2.TaskMetadata:
    metadata = task_definition_pb2.TaskMetadata(
        short_name=row.function_name,
        deployed_at=micros_to_proto(row.created_at),
        environment_name=row.environment,
        short_description=row.short_description,
    )
    if row.deployed_by:
        metadata.deployed_by.user.id.subject = row.deployed_by
    return metadata
