"""Rows as they leave the database layer: frozen values, one a table."""

from __future__ import annotations

from dataclasses import dataclass

from flyte_binary.domain.ids import ActionId, AttemptId, RunId, TaskId
from flyte_binary.domain.phases import Phase, is_terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRow:
    """One action; times are microseconds since the epoch, blobs are serialized protobuf."""

    id: ActionId
    parent: str | None
    phase: Phase
    action_type: int
    action_group: str = ""
    task: TaskId | None = None
    task_type: str = ""
    short_name: str = ""
    function_name: str = ""
    environment_name: str = ""
    spec_digest: str | None = None
    detail: bytes | None = None
    """`workflow.ConditionAction` or `workflow.TraceAction`."""
    input_uri: str = ""
    run_output_base: str = ""
    cache_key: str = ""
    cache_status: int = 0
    run_spec: bytes | None = None
    """`task.RunSpec`; root actions only."""
    run_source: int = 0
    attempts: int = 1
    user_failures: int = 0
    system_failures: int = 0
    infrastructure_failures: int = 0
    queued_at: int = 0
    """When the current attempt began to wait."""
    not_before: int | None = None
    """The current attempt is not launched earlier (retry back-off)."""
    error: bytes | None = None
    """`core.ExecutionError` of the final failure."""
    output_uri: str = ""
    value: bytes | None = None
    """`core.Literal` that a condition was signalled with."""
    signalled_by: bytes | None = None
    abort_reason: str | None = None
    aborted_by: bytes | None = None
    recovered_from: bytes | None = None
    """`common.ActionIdentifier`."""
    relation: bytes | None = None
    """`common.Relation`; root actions only."""
    trigger_name: str = ""
    trigger_task_name: str = ""
    trigger_revision: int = 0
    created_by: bytes | None = None
    created_by_subject: str = ""
    search_name: str = ""
    superseded: bool = False
    created_at: int = 0
    updated_at: int = 0
    ended_at: int | None = None
    version: int = 1

    @property
    def terminal(self) -> bool:
        return is_terminal(self.phase)

    @property
    def run_id(self) -> RunId:
        return self.id.run_id

    @property
    def parent_id(self) -> ActionId | None:
        return None if self.parent is None else self.run_id.action(self.parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    id: AttemptId
    nonce: str
    node: str
    output_prefix: str
    launched_at: int
    running_at: int | None = None
    ended_at: int | None = None
    archived_at: int | None = None
    """Set when nothing is owed any more for this attempt."""
    log_uri: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    action: ActionId
    attempt: int
    phase: int
    version: int
    info: bytes
    """`workflow.ActionEvent`."""
    created_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRow:
    identifier: str
    name: str = ""
    description: str = ""
    labels: bytes | None = None
    state: int = 0
    created_at: int = 0
    updated_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    id: TaskId
    environment: str = ""
    function_name: str = ""
    env_description: str = ""
    short_description: str = ""
    deployed_by: str = ""
    is_entrypoint: bool = False
    spec_digest: str = ""
    created_at: int = 0
    updated_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRow:
    key: str
    output_uri: str
    metadata: bytes | None
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRow:
    key: str
    owner: str
    heartbeat_seconds: int
    expires_at: int | None
