"""What lists of runs and actions may be filtered and sorted by, and their default order."""

from __future__ import annotations

from collections.abc import Callable

from flyteidl2.common import phase_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.domain.filters import Field, Fields, Kind, Order, fields


def _phase(name: str) -> int | None:
    return dict(phase_pb2.ActionPhase.items()).get(_full(name, "ACTION_PHASE_"))


def _action_type(name: str) -> int | None:
    return dict(run_definition_pb2.ActionType.items()).get(_full(name, "ACTION_TYPE_"))


def _run_source(name: str) -> int | None:
    return dict(run_definition_pb2.RunSource.items()).get(_full(name, "RUN_SOURCE_"))


def _full(name: str, prefix: str) -> str:
    return name if name.startswith(prefix) else f"{prefix}{name.upper()}"


def _enum(name: str, names: Callable[[str], int | None]) -> Field:
    return Field(name, name, Kind.NUMBER, names)


RUN = Field("run_name", "run")
NAME = Field("name", "name")
PHASE = _enum("phase", _phase)
CREATED_AT = Field("created_at", "created_at", Kind.TIME)

ACTION_FIELDS: Fields = fields(
    Field("project", "project"),
    Field("domain", "domain"),
    RUN,
    NAME,
    PHASE,
    _enum("action_type", _action_type),
    _enum("run_source", _run_source),
    Field("created_by_subject", "created_by_subject"),
    # The SDK's names for two of the columns.
    Field("created_by", "created_by_subject"),
    Field("parent_name", "parent"),
    Field("trigger_task_name", "trigger_task_name"),
    Field("trigger_name", "trigger_name"),
    Field("trigger_revision", "trigger_revision", Kind.NUMBER),
    Field("task_project", "task_project"),
    Field("task_domain", "task_domain"),
    Field("task_name", "task_name"),
    Field("task_version", "task_version"),
    Field("function_name", "function_name"),
    CREATED_AT,
    Field("updated_at", "updated_at", Kind.TIME),
    Field("ended_at", "ended_at", Kind.TIME),
    Field("duration_ms", "duration_ms", Kind.NUMBER),
)

DEFAULT_ORDER = (Order(PHASE), Order(CREATED_AT, True), Order(RUN, True), Order(NAME, True))
"""What is not finished first, then the newest (reference backend behaviour)."""

RUN_TIES = (RUN, Field("project", "project"), Field("domain", "domain"))
"""Within all projects a run's name alone may occur twice."""

ACTION_TIES = (RUN, NAME)
