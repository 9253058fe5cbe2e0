"""Triggers as they leave the database layer: frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from flyte_binary.domain.ids import TaskId, TriggerId


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRow:
    """A trigger as it is, or as one of its revisions was; times are microseconds since the epoch."""

    id: TriggerId
    revision: int
    spec: bytes
    """`trigger.TriggerSpec`."""

    automation_spec: bytes
    """`task.TriggerAutomationSpec`."""

    automation_type: int
    task_version: str
    active: bool
    deployed_by: bytes | None = None
    """`common.EnrichedIdentity`; so is `updated_by`."""

    updated_by: bytes | None = None
    deployed_at: int
    updated_at: int
    triggered_at: int | None = None
    deleted_at: int | None = None
    with_task: bool = False
    """It came with a task's deployment. Not kept in revisions, nor is what follows."""

    anchor: int = 0
    """Where a rate without a start of its own begins to count."""

    next_due: int | None = None
    """The first time that has not been fired; None while nothing is scheduled."""

    watched_artifact: str | None = None
    """The artifact of the same project and domain whose new versions fire it; None while none do."""

    @property
    def task(self) -> TaskId:
        return TaskId(self.id.project, self.id.domain, self.id.task_name, self.task_version)


@dataclass(frozen=True, slots=True)
class RevisionRow:
    trigger: TriggerRow
    action: int
    """A `TriggerRevisionAction`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerScope:
    """Whatever is given has to match."""

    project: str | None = None
    domain: str | None = None
    task_name: str | None = None
    task_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerSummary:
    """The live triggers of one version of a task."""

    total: int
    active: int
    name: str
    automation_spec: bytes
    """Of the first of them by name, like `name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringRow:
    """A run that a trigger owes to a version of the artifact that it watches, which is of the same project and
    domain."""

    trigger: TriggerId
    artifact: str
    version: str
    created_at: int
    """Microseconds since the epoch."""
