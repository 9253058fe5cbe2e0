"""Lists of runs and of actions: pages, and the few columns that aggregates need."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any  # columns of one list have many types

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, and_, exists, or_, select

from flyte_binary.db.actions import row_of
from flyte_binary.db.listing import Columns, Listed, find_page, where
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.statements import of_run
from flyte_binary.db.tables import actions, attempts
from flyte_binary.domain.filters import Condition
from flyte_binary.domain.ids import ProjectId, RunId
from flyte_binary.domain.pages import Page, SortValue
from flyte_binary.domain.phases import Phase

_DURATION_MS: ColumnElement[int] = (actions.c.ended_at - actions.c.created_at + 500) // 1000
_RUN = (actions.c.project, actions.c.domain, actions.c.run)

COLUMNS: Columns = {
    **{
        name: Listed(actions.c[name])
        for name in (
            "project",
            "domain",
            "run",
            "name",
            "phase",
            "action_type",
            "run_source",
            "created_by_subject",
            "trigger_task_name",
            "trigger_name",
            "trigger_revision",
            "task_project",
            "task_domain",
            "task_version",
            "created_at",
            "updated_at",
        )
    },
    "task_name": Listed(actions.c.task_name, folded=actions.c.search_name),
    "function_name": Listed(actions.c.function_name, folded=actions.c.search_name),
    "parent": Listed(actions.c.parent, nullable=True),
    "ended_at": Listed(actions.c.ended_at, nullable=True),
    "duration_ms": Listed(_DURATION_MS, nullable=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """What a list of runs is narrowed to; everything is optional."""

    project: ProjectId | None = None
    task_project: str = ""
    task_domain: str = ""
    task_name: str = ""
    task_version: str = ""
    trigger_task_name: str = ""
    trigger_name: str = ""
    run_source: int | None = None
    """A `RunSource`."""

    paused_only: bool = False
    """Only runs in which an action is paused, that is, waits for somebody."""


Key = tuple[str, str, str, str, int]
"""Project, domain, run, name and version of an action: what is made from it can be kept under that."""

_KEY = (*_RUN, actions.c.name, actions.c.version)


@dataclass(frozen=True, slots=True)
class Found:
    keys: list[Key]
    last: tuple[SortValue, ...] | None
    """Sort values of the last row if more rows follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What aggregates over runs are made from; times are microseconds since the epoch."""

    run: RunId
    phase: Phase
    task_name: str
    short_name: str
    environment_name: str
    created_at: int
    ended_at: int | None
    running_at: int | None
    """When the first attempt began to run."""

    error: bytes | None
    created_by: bytes | None


def list_runs(connection: Connection, scope: RunScope, conditions: list[Condition], page: Page) -> Found:
    statement = select(*_KEY).where(_in_scope(scope), where(conditions, COLUMNS, _RUN))
    fixed = {"name", "project", "domain"} if scope.project is not None else {"name"}
    return _found(connection, statement, page, fixed)


def list_actions(connection: Connection, run: RunId, conditions: list[Condition], page: Page) -> Found:
    statement = select(*_KEY).where(of_run(actions, run), where(conditions, COLUMNS, _RUN))
    return _found(connection, statement, page, {"project", "domain", "run"})


def rows_of(connection: Connection, keys: Collection[Key]) -> list[ActionRow]:
    """The rows of those of the keys that exist, in no order."""
    by_run: dict[tuple[str, str, str], list[str]] = {}
    for project, domain, run, name, _ in keys:
        by_run.setdefault((project, domain, run), []).append(name)
    if len(by_run) == 1:
        ((run, names),) = by_run.items()
        conditions = [of_run(actions, RunId(*run)), actions.c.name.in_(names)]
    elif by_run:
        conditions = [_roots_of([RunId(*run) for run in by_run])]
    else:
        return []
    return [row_of(record) for record in connection.execute(select(actions).where(*conditions)).mappings()]


def newest_runs(connection: Connection, scope: RunScope, *, limit: int) -> list[ActionRow]:
    statement = (
        select(actions).where(_in_scope(scope)).order_by(actions.c.created_at.desc(), actions.c.run).limit(limit)
    )
    return [row_of(record) for record in connection.execute(statement).mappings()]


def runs_named(connection: Connection, runs: list[RunId]) -> list[ActionRow]:
    """Root actions of those of the runs that exist, in no order."""
    statement = select(actions).where(_roots_of(runs))
    return [row_of(record) for record in connection.execute(statement).mappings()]


def run_facts(
    connection: Connection, project: ProjectId | None, *, since: int | None, until: int | None, limit: int
) -> list[RunFacts]:
    """Of the newest runs that were created within the times, both included; newest first."""
    conditions = [_in_scope(RunScope(project=project))]
    if since is not None:
        conditions.append(actions.c.created_at >= since)
    if until is not None:
        conditions.append(actions.c.created_at <= until)
    statement = _FACTS.where(*conditions).order_by(actions.c.created_at.desc(), actions.c.run).limit(limit)
    return [_facts_of(record) for record in connection.execute(statement).mappings()]


def run_facts_named(connection: Connection, runs: list[RunId]) -> list[RunFacts]:
    return [_facts_of(record) for record in connection.execute(_FACTS.where(_roots_of(runs))).mappings()]


_FACTS = select(
    actions.c.project,
    actions.c.domain,
    actions.c.run,
    actions.c.phase,
    actions.c.task_name,
    actions.c.short_name,
    actions.c.environment_name,
    actions.c.created_at,
    actions.c.ended_at,
    attempts.c.running_at,
    actions.c.error,
    actions.c.created_by,
).select_from(
    actions.outerjoin(
        attempts,
        and_(
            attempts.c.project == actions.c.project,
            attempts.c.domain == actions.c.domain,
            attempts.c.run == actions.c.run,
            attempts.c.name == actions.c.name,
            attempts.c.attempt == 1,
        ),
    )
)


def _facts_of(record: RowMapping) -> RunFacts:
    return RunFacts(
        run=RunId(record["project"], record["domain"], record["run"]),
        phase=Phase(record["phase"]),
        task_name=record["task_name"],
        short_name=record["short_name"],
        environment_name=record["environment_name"],
        created_at=record["created_at"],
        ended_at=record["ended_at"],
        running_at=record["running_at"],
        error=record["error"],
        created_by=record["created_by"],
    )


def _in_scope(scope: RunScope) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = [actions.c.parent.is_(None)]
    if scope.project is not None:
        conditions += [actions.c.project == scope.project.project, actions.c.domain == scope.project.domain]
    for name in ("task_project", "task_domain", "task_name", "task_version", "trigger_task_name", "trigger_name"):
        wanted = getattr(scope, name)
        if wanted:
            conditions.append(actions.c[name] == wanted)
    if scope.run_source is not None:
        conditions.append(actions.c.run_source == scope.run_source)
    if scope.paused_only:
        conditions.append(_has_paused())
    return and_(*conditions)


def _has_paused() -> ColumnElement[bool]:
    other = actions.alias("paused")
    same_run = (other.c.project == actions.c.project, other.c.domain == actions.c.domain, other.c.run == actions.c.run)
    return exists().where(*same_run, other.c.phase == int(Phase.PAUSED))


def _roots_of(runs: list[RunId]) -> ColumnElement[bool]:
    """Grouped by project, so that the primary key is used."""
    names: dict[ProjectId, list[str]] = {}
    for run in runs:
        names.setdefault(ProjectId(run.project, run.domain), []).append(run.name)
    groups = [
        and_(actions.c.project == project.project, actions.c.domain == project.domain, actions.c.run.in_(found))
        for project, found in names.items()
    ]
    return and_(actions.c.parent.is_(None), or_(*groups))


def _found(
    connection: Connection,
    statement: Select[*tuple[Any, ...]],  # selects `_KEY`
    page: Page,
    fixed: Collection[str],
) -> Found:
    records, last = find_page(connection, statement, page, COLUMNS, fixed)
    return Found([(row.project, row.domain, row.run, row.name, row.version) for row in records], last)
