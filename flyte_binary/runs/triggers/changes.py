"""What may happen to a trigger: deployed, activated, deactivated, deleted; each is a revision of its own.

All are parts of write operations. Whatever changes when a trigger fires ends what was due before: a schedule begins to
count when it is deployed or activated, and nothing from before that is caught up; nor are versions of an artifact that
were published before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from flyteidl2.task import common_pb2
from flyteidl2.trigger import trigger_definition_pb2 as pb

from flyte_binary.db.transaction import Transaction
from flyte_binary.db.trigger_rows import TriggerRow
from flyte_binary.domain import topics
from flyte_binary.domain.errors import Aborted, FailedPrecondition
from flyte_binary.domain.ids import TaskId, TriggerId
from flyte_binary.domain.schedules import Schedule, schedule_from_proto
from flyte_binary.runs.triggers.draft import TriggerDraft


def deploy(
    tx: Transaction, draft: TriggerDraft, *, revision: int = 0, with_task: bool, by: bytes | None, at: int
) -> TriggerRow:
    """`revision` is the one that the caller knows, 0 for any.

    Raises `FailedPrecondition` if the trigger is at another one.
    """
    current = tx.triggers.lock(draft.id)
    if current is None:
        row = _first(draft, with_task=with_task, by=by, at=at)
        if tx.triggers.insert(row):
            _noted(tx, row, pb.TRIGGER_REVISION_ACTION_DEPLOY)
            return row
        current = tx.triggers.lock(draft.id)
        if current is None:
            raise Aborted(f"trigger {draft.id} was deployed at the same moment by somebody else: try again")
    if revision not in (0, current.revision):
        raise FailedPrecondition(
            f"revision: trigger {draft.id} is at revision {current.revision}, not {revision}: "
            "somebody has changed it since; fetch it and try again"
        )
    row = _redeployed(current, draft, with_task=with_task, by=by, at=at)
    _replace(tx, current, row, pb.TRIGGER_REVISION_ACTION_DEPLOY)
    return row


def prune(tx: Transaction, task: TaskId, kept: Iterable[str], *, by: bytes | None, at: int) -> None:
    """The triggers that a task is deployed with replace all that it had.

    Deployed without any it loses those that came with it, and keeps those that were made on their own.
    """
    names = frozenset(kept)
    for row in tx.triggers.of_task(task.project, task.domain, task.name):
        if row.id.name not in names and (names or row.with_task):
            _delete(tx, row, by=by, at=at)


def set_active(tx: Transaction, trigger: TriggerId, *, active: bool, by: bytes | None, at: int) -> None:
    """Nothing happens if there is no such trigger, or it is so already."""
    current = tx.triggers.lock(trigger)
    if current is None or current.deleted_at is not None or current.active == active:
        return
    changed = replace(current, active=active, revision=current.revision + 1, updated_at=at, updated_by=by)
    action = pb.TRIGGER_REVISION_ACTION_ACTIVATE if active else pb.TRIGGER_REVISION_ACTION_DEACTIVATE
    _replace(tx, current, _scheduled_anew(changed, at), action)


def delete(tx: Transaction, trigger: TriggerId, *, by: bytes | None, at: int) -> None:
    """Nothing happens if there is no such trigger."""
    current = tx.triggers.lock(trigger)
    if current is not None and current.deleted_at is None:
        _delete(tx, current, by=by, at=at)


def schedule_of(row: TriggerRow) -> Schedule | None:
    """None for a trigger that nothing schedules."""
    automation = common_pb2.TriggerAutomationSpec.FromString(row.automation_spec)
    if automation.type != common_pb2.TYPE_SCHEDULE:
        return None
    return schedule_from_proto(automation.schedule, anchor=row.anchor)


def _first(draft: TriggerDraft, *, with_task: bool, by: bytes | None, at: int) -> TriggerRow:
    row = TriggerRow(
        id=draft.id,
        revision=1,
        spec=draft.spec.SerializeToString(deterministic=True),
        automation_spec=draft.automation.SerializeToString(deterministic=True),
        automation_type=draft.automation.type,
        task_version=draft.spec.task_version,
        active=draft.spec.active,
        deployed_by=by,
        deployed_at=at,
        updated_at=at,
        with_task=with_task,
    )
    return _scheduled_anew(row, at)


def _redeployed(current: TriggerRow, draft: TriggerDraft, *, with_task: bool, by: bytes | None, at: int) -> TriggerRow:
    """The time of the last update stays unless the deployment activates or deactivates (reference behaviour)."""
    fresh = _first(draft, with_task=with_task, by=by, at=at)
    row = replace(
        fresh,
        revision=current.revision + 1,
        triggered_at=current.triggered_at,
        updated_by=current.updated_by,
        updated_at=at if current.active != fresh.active else current.updated_at,
    )
    if current.active and row.active and current.automation_spec == row.automation_spec:
        return replace(row, anchor=current.anchor, next_due=current.next_due)
    return row


def _delete(tx: Transaction, current: TriggerRow, *, by: bytes | None, at: int) -> None:
    gone = replace(current, active=False, deleted_at=at, updated_by=by, revision=current.revision + 1)
    gone = replace(gone, next_due=None, watched_artifact=None)
    _replace(tx, current, gone, pb.TRIGGER_REVISION_ACTION_DELETE)


def _scheduled_anew(row: TriggerRow, at: int) -> TriggerRow:
    row = replace(row, anchor=at, next_due=None, watched_artifact=_watched_artifact(row))
    schedule = schedule_of(row) if row.active else None
    return row if schedule is None else replace(row, next_due=schedule.next_after(at))


def _watched_artifact(row: TriggerRow) -> str | None:
    automation = common_pb2.TriggerAutomationSpec.FromString(row.automation_spec)
    return automation.artifact.artifact_name if row.active and automation.type == common_pb2.TYPE_ARTIFACT else None


def _replace(tx: Transaction, current: TriggerRow, row: TriggerRow, action: int) -> None:
    if not tx.triggers.replace(row, revision=current.revision):
        raise Aborted(f"trigger {row.id} was changed at the same moment by somebody else: try again")
    still_watching = row.watched_artifact is not None and current.automation_spec == row.automation_spec
    if current.watched_artifact is not None and not still_watching:
        tx.artifact_firings.drop(row.id)
    _noted(tx, row, action)


def _noted(tx: Transaction, row: TriggerRow, action: int) -> None:
    tx.triggers.record(row, action)
    tx.changed(topics.TRIGGERS, (row.id.project, row.id.domain, row.id.task_name, row.id.name))
