"""What retention asks and removes, in small steps.

Rows go first, and with the last of them a note of the folder to be emptied: nothing is shown whose files are gone, and
a crash in between leaves only work to be gone on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, or_, select, tuple_

from flyte_binary.db.dialect import insert_if_absent
from flyte_binary.db.prepared import Prepared
from flyte_binary.db.statements import is_run, of_action, of_run
from flyte_binary.db.tables import (
    action_events,
    actions,
    artifacts,
    attempts,
    cache_outputs,
    removals,
    run_labels,
    task_specs,
    tasks,
    triggers,
)
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.phases import ACTIVE

_ROOTS = (actions.c.ended_at, actions.c.project, actions.c.domain, actions.c.run)
_NOTES = (removals.c.created_at, removals.c.project, removals.c.domain, removals.c.run)
_NOTE_OF_RUN = Prepared(select(removals.c.created_at).where(is_run(removals)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    run: RunId
    ended_at: int
    """Microseconds since the epoch."""

    output_base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedRun:
    """Its rows are gone, its folder is not."""

    run: RunId
    removed_at: int
    """Microseconds since the epoch."""

    folder: str


class Retention:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ended_runs(self, before: int, *, after: EndedRun | None, limit: int) -> list[EndedRun]:
        """Runs whose root ended before that moment, the longest ended first, behind `after`."""
        conditions = [actions.c.parent.is_(None), actions.c.ended_at < before]
        if after is not None:
            place = (after.ended_at, after.run.project, after.run.domain, after.run.name)
            conditions.append(tuple_(*_ROOTS) > place)
        statement = select(*_ROOTS, actions.c.run_output_base).where(*conditions).order_by(*_ROOTS).limit(limit)
        return [
            EndedRun(run=RunId(project, domain, run), ended_at=ended_at, output_base=base)
            for ended_at, project, domain, run, base in self._connection.execute(statement)
        ]

    def is_at_work(self, run: RunId) -> bool:
        """Something of it is unfinished, or a process, a log or a folder is still owed."""
        unfinished = exists().where(of_run(actions, run), actions.c.phase.in_([int(phase) for phase in ACTIVE]))
        owed = exists().where(of_run(attempts, run), attempts.c.archived_at.is_(None))
        return self._connection.execute(select(unfinished | owed)).scalar_one()

    def cached_folders(self) -> list[str]:
        """Outputs that the cache refers to."""
        return list(self._connection.execute(select(cache_outputs.c.output_uri)).scalars())

    def borrowed(self) -> list[tuple[RunId, str]]:
        """Locations outside of a run's own folder that it has as outputs or inputs (cache hits, recovered actions,
        inputs of reruns), with the run."""
        run = (actions.c.project, actions.c.domain, actions.c.run)
        outputs = select(*run, actions.c.output_uri).where(_is_elsewhere(actions.c.output_uri)).distinct()
        inputs = select(*run, actions.c.input_uri).where(actions.c.parent.is_(None), _is_elsewhere(actions.c.input_uri))
        return [
            (RunId(project, domain, name), uri)
            for statement in (outputs, inputs)
            for project, domain, name, uri in self._connection.execute(statement)
        ]

    def runs_of_artifacts(self) -> set[RunId]:
        columns = (artifacts.c.project, artifacts.c.domain, artifacts.c.source_run)
        statement = select(*columns).where(artifacts.c.source_run != "").distinct()
        return {RunId(project, domain, run) for project, domain, run in self._connection.execute(statement)}

    def remove_actions(self, run: RunId, *, limit: int) -> int:
        """Some actions below the root, with their attempts and events; how many."""
        statement = select(actions.c.name).where(of_run(actions, run), actions.c.parent.is_not(None)).limit(limit)
        names = list(self._connection.execute(statement).scalars())
        for table in (action_events, attempts, actions):
            self._connection.execute(delete(table).where(of_run(table, run), table.c.name.in_(names)))
        return len(names)

    def remove_root(self, run: EndedRun, *, at: int) -> None:
        """The last of the run, and the note about its folder."""
        for table in (action_events, attempts, actions):
            self._connection.execute(delete(table).where(of_action(table, run.run.root())))
        self._connection.execute(delete(run_labels).where(of_run(run_labels, run.run)))
        if run.output_base:
            name = {"project": run.run.project, "domain": run.run.domain, "run": run.run.name}
            insert_if_absent(self._connection, removals, {**name, "uri": run.output_base, "created_at": at})

    def is_being_removed(self, run: RunId) -> bool:
        """A run of that name was removed, and its files are still there."""
        of = {"p": run.project, "d": run.domain, "r": run.name}
        return _NOTE_OF_RUN.first(self._connection, of) is not None

    def expire_cache(self, before: int, *, limit: int) -> int:
        """Forget entries that were last written before that moment; how many."""
        statement = select(cache_outputs.c.key).where(cache_outputs.c.updated_at < before).limit(limit)
        keys = list(self._connection.execute(statement).scalars())
        if not keys:
            return 0
        # Again with the time: an entry may have been written anew since it was chosen.
        again = and_(cache_outputs.c.key.in_(keys), cache_outputs.c.updated_at < before)
        return self._connection.execute(delete(cache_outputs).where(again)).rowcount

    def removed_runs(self, before: int, *, after: RemovedRun | None, limit: int) -> list[RemovedRun]:
        """Those whose rows went before that moment and whose files did not yet, behind `after`."""
        conditions = [removals.c.created_at < before]
        if after is not None:
            place = (after.removed_at, after.run.project, after.run.domain, after.run.name)
            conditions.append(tuple_(*_NOTES) > place)
        statement = select(*_NOTES, removals.c.uri).where(*conditions).order_by(*_NOTES).limit(limit)
        return [
            RemovedRun(run=RunId(project, domain, run), removed_at=removed_at, folder=uri)
            for removed_at, project, domain, run, uri in self._connection.execute(statement)
        ]

    def emptied(self, run: RunId) -> None:
        self._connection.execute(delete(removals).where(of_run(removals, run)))

    def kept_specs(self) -> list[str]:
        """Digests of the specs of all tasks and actions that are kept."""
        found: set[str] = set()
        for table in (tasks, actions):
            digests = select(table.c.spec_digest).where(table.c.spec_digest.is_not(None)).distinct()
            found.update(self._connection.execute(digests).scalars())
        return sorted(found)

    def specs(self, digests: Sequence[str]) -> list[bytes]:
        return list(
            self._connection.execute(select(task_specs.c.spec).where(task_specs.c.digest.in_(digests))).scalars()
        )

    def trigger_specs(self) -> list[bytes]:
        """Of triggers that are not deleted."""
        return list(self._connection.execute(select(triggers.c.spec).where(triggers.c.deleted_at.is_(None))).scalars())

    def artifact_specs(self) -> list[bytes]:
        return list(self._connection.execute(select(artifacts.c.spec)).scalars())

    def used_inputs(self, uris: Iterable[str]) -> set[str]:
        """Those of the locations of inputs that a kept action has."""
        statement = select(actions.c.input_uri).where(actions.c.input_uri.in_(list(uris))).distinct()
        return set(self._connection.execute(statement).scalars())

    def has_run_between(self, project: str, domain: str, begin: int, end: int) -> bool:
        made = (actions.c.created_at >= begin, actions.c.created_at <= end)
        roots = (actions.c.project == project, actions.c.domain == domain, actions.c.parent.is_(None))
        return self._connection.execute(select(exists().where(*roots, *made))).scalar_one()


def _is_elsewhere(location: ColumnElement[str]) -> ColumnElement[bool]:
    base = actions.c.run_output_base
    own = func.substr(location, 1, func.length(base) + 1) == base.concat("/")
    return and_(location != "", or_(base == "", ~own))
