"""`Action`, `Run` and `EnrichedAction` messages from the row of an action.

Organisations stay empty in all ids: they are no part of an identity here.
"""

from __future__ import annotations

from flyteidl2.common import identifier_pb2, identity_pb2, run_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.domain.wire_enums import action_type_to_wire, cache_status_to_wire, phase_to_wire, run_source_to_wire

TASK = run_definition_pb2.ACTION_TYPE_TASK
TRACE = run_definition_pb2.ACTION_TYPE_TRACE
CONDITION = run_definition_pb2.ACTION_TYPE_CONDITION


def run_of(row: ActionRow, run_spec: task_run_pb2.RunSpec | None = None) -> run_definition_pb2.Run:
    """A run as lists and watches show it. `run_spec` saves parsing the row's, if the caller has it."""
    spec = run_spec if run_spec is not None else run_spec_of(row)
    return run_definition_pb2.Run(action=action_of(row), labels=spec.labels.values)


def run_spec_of(row: ActionRow) -> task_run_pb2.RunSpec:
    return task_run_pb2.RunSpec.FromString(row.run_spec or b"")


def action_of(row: ActionRow) -> run_definition_pb2.Action:
    return run_definition_pb2.Action(id=row.id.to_proto(), metadata=metadata_of(row), status=status_of(row))


def status_of(row: ActionRow) -> run_definition_pb2.ActionStatus:
    """Never without a phase, a start or an attempt: the SDK computes with all three."""
    status = run_definition_pb2.ActionStatus(
        phase=phase_to_wire(row.phase),
        start_time=micros_to_proto(row.created_at),
        attempts=max(1, row.attempts),
        cache_status=cache_status_to_wire(row.cache_status),
    )
    if row.ended_at is not None:
        ended_at = max(row.ended_at, row.created_at)
        status.end_time.CopyFrom(micros_to_proto(ended_at))
        status.duration_ms = (ended_at - row.created_at + 500) // 1000
    return status


def metadata_of(row: ActionRow) -> run_definition_pb2.ActionMetadata:
    metadata = run_definition_pb2.ActionMetadata(
        parent=row.parent or "",
        group=row.action_group,
        action_type=action_type_to_wire(row.action_type),
        environment_name=row.environment_name,
        funtion_name=row.function_name,
        source=run_source_to_wire(row.run_source),
    )
    _add_kind(metadata, row)
    _add_trigger(metadata, row)
    if row.created_by is not None:
        metadata.executed_by.CopyFrom(identity_pb2.EnrichedIdentity.FromString(row.created_by))
    if row.relation is not None:
        metadata.relation.CopyFrom(run_pb2.Relation.FromString(row.relation))
    if row.recovered_from is not None:
        metadata.recovered_from.CopyFrom(identifier_pb2.ActionIdentifier.FromString(row.recovered_from))
    return metadata


def condition_of(row: ActionRow) -> run_definition_pb2.ConditionAction:
    return run_definition_pb2.ConditionAction.FromString(row.detail or b"")


def _add_kind(metadata: run_definition_pb2.ActionMetadata, row: ActionRow) -> None:
    match row.action_type:
        case run_definition_pb2.ACTION_TYPE_TASK:
            metadata.task.task_type = row.task_type
            metadata.task.short_name = row.short_name
            if row.task is not None:
                metadata.task.id.CopyFrom(row.task.to_proto())
        case run_definition_pb2.ACTION_TYPE_TRACE:
            metadata.trace.name = row.function_name
        case run_definition_pb2.ACTION_TYPE_CONDITION:
            condition = condition_of(row)
            metadata.condition.name = row.function_name or condition.name
            if condition.HasField("type"):
                metadata.condition.type.CopyFrom(condition.type)
        case _:
            pass


def _add_trigger(metadata: run_definition_pb2.ActionMetadata, row: ActionRow) -> None:
    if not row.trigger_name:
        return
    metadata.trigger_name = row.trigger_name
    trigger = metadata.trigger_id
    trigger.revision = row.trigger_revision
    trigger.name.project = row.id.project
    trigger.name.domain = row.id.domain
    trigger.name.name = row.trigger_name
    trigger.name.task_name = row.trigger_task_name
