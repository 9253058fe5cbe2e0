"""The `actions` table: insert, read, and the guarded moves between phases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from typing import Any  # column values of one row have many types

from sqlalchemy import Connection, RowMapping, Update, bindparam, select, tuple_, update

from flyte_binary.db.dialect import for_update, insert_if_absent
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.statements import IN_LIMIT, batched, of_action, of_run
from flyte_binary.db.tables import actions
from flyte_binary.domain.ids import ActionId, RunId, TaskId
from flyte_binary.domain.phases import ACTIVE, Phase, sources_of

_SPECIAL = frozenset({"id", "task", "phase"})
_PLAIN = tuple(field.name for field in fields(ActionRow) if field.name not in _SPECIAL)
_UNFINISHED = actions.c.phase.in_(sorted(ACTIVE))

_UNFINISHED_PHASES = tuple(sorted(ACTIVE))

_ID_CONDITIONS = (
    actions.c.project == bindparam("p"),
    actions.c.domain == bindparam("d"),
    actions.c.run == bindparam("r"),
    actions.c.name == bindparam("n"),
)
_BY_ID = select(actions).where(*_ID_CONDITIONS)


class Actions:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, row: ActionRow) -> bool:
        """False, and nothing is changed, if an action of that id exists."""
        return insert_if_absent(self._connection, actions, values_of(row))

    def get(self, action: ActionId) -> ActionRow | None:
        found = self._connection.execute(
            _BY_ID, {"p": action.project, "d": action.domain, "r": action.run, "n": action.name}
        )
        record = found.mappings().first()
        return None if record is None else row_of(record)

    def get_many(self, run: RunId, names: Iterable[str]) -> list[ActionRow]:
        """Those of the named actions that exist, in no order."""
        rows: list[ActionRow] = []
        for chunk in batched(names, IN_LIMIT):
            statement = select(actions).where(of_run(actions, run), actions.c.name.in_(chunk))
            rows.extend(row_of(record) for record in self._connection.execute(statement).mappings())
        return rows

    def lock(self, action: ActionId) -> ActionRow | None:
        """`get`, holding the row against other writers until the commit."""
        statement = for_update(select(actions).where(of_action(actions, action)))
        record = self._connection.execute(statement).mappings().first()
        return None if record is None else row_of(record)

    def children(self, parent: ActionId, *, unfinished_only: bool = False) -> list[ActionRow]:
        conditions = [of_run(actions, parent.run_id), actions.c.parent == parent.name]
        if unfinished_only:
            conditions.append(_UNFINISHED)
        statement = select(actions).where(*conditions).order_by(actions.c.created_at, actions.c.name)
        return [row_of(record) for record in self._connection.execute(statement).mappings()]

    def page_of_run(self, run: RunId, *, after: tuple[int, str] | None, limit: int) -> list[ActionRow]:
        """Actions of a run by (created_at, name), starting behind `after`."""
        conditions = [of_run(actions, run)]
        if after is not None:
            conditions.append(tuple_(actions.c.created_at, actions.c.name) > after)
        statement = select(actions).where(*conditions).order_by(actions.c.created_at, actions.c.name).limit(limit)
        return [row_of(record) for record in self._connection.execute(statement).mappings()]

    def unfinished(self) -> list[ActionRow]:
        """Every action that is not terminal: what a starting executor looks at first."""
        statement = select(actions).where(_UNFINISHED)
        return [row_of(record) for record in self._connection.execute(statement).mappings()]

    def unfinished_of_run(self, run: RunId) -> list[ActionRow]:
        statement = select(actions).where(of_run(actions, run), _UNFINISHED)
        return [row_of(record) for record in self._connection.execute(statement).mappings()]

    def advance(
        self,
        action: ActionId,
        target: Phase,
        *,
        at: int,
        version: int | None = None,
        **changes: Any,  # column -> value
    ) -> bool:
        """Move to `target` if the phase table allows it (and `version` still stands).

        False means that the report is late or stale: nothing was written, drop it.
        """
        if target not in ACTIVE:
            changes.setdefault("ended_at", at)
        changes.update(phase=int(target), updated_at=at)
        return self._update(action, sources_of(target), version, changes)

    def update(
        self,
        action: ActionId,
        *,
        at: int,
        version: int | None = None,
        **changes: Any,  # column -> value
    ) -> bool:
        """Change columns without a move; only while the action is not terminal."""
        return self._update(action, _UNFINISHED_PHASES, version, {**changes, "updated_at": at})

    def reopen(self, action: ActionId, *, at: int, **changes: Any) -> bool:  # column -> value
        """The one way out of a terminal phase: a superseded child is asked for again by the next
        attempt of its parent, and starts over as a new attempt with a fresh budget."""
        fresh = {
            "phase": int(Phase.QUEUED),
            "superseded": False,
            "user_failures": 0,
            "system_failures": 0,
            "infrastructure_failures": 0,
            "queued_at": at,
            "not_before": None,
            "error": None,
            "output_uri": "",
            "value": None,
            "signalled_by": None,
            "abort_reason": None,
            "aborted_by": None,
            "cache_status": 0,
            "ended_at": None,
            "updated_at": at,
            **changes,
        }
        statement = (
            update(actions)
            .where(of_action(actions, action), actions.c.superseded.is_(True))
            .values(version=actions.c.version + 1, **fresh)
        )
        return self._connection.execute(statement).rowcount > 0

    def supersede(self, run: RunId, names: Iterable[str], *, at: int) -> None:
        """Take terminal actions out of the watch's snapshot; asked for again, they start over."""
        for chunk in batched(names, IN_LIMIT):
            statement = (
                update(actions)
                .where(of_run(actions, run), actions.c.name.in_(chunk))
                .values(superseded=True, updated_at=at, version=actions.c.version + 1)
            )
            self._connection.execute(statement)

    def failed_children(self, parent: ActionId) -> list[ActionRow]:
        """Children that failed, timed out or were aborted, and still count."""
        failed = (int(Phase.FAILED), int(Phase.TIMED_OUT), int(Phase.ABORTED))
        statement = select(actions).where(
            of_run(actions, parent.run_id),
            actions.c.parent == parent.name,
            actions.c.phase.in_(failed),
            actions.c.superseded.is_(False),
        )
        return [row_of(record) for record in self._connection.execute(statement).mappings()]

    def mark_aborted(
        self, run: RunId, names: Iterable[str], *, at: int, reason: str | None, aborted_by: bytes | None = None
    ) -> list[str]:
        """Mark those of the named actions that are not terminal; returns the ones that were marked."""
        marked: list[str] = []
        for chunk in batched(names, IN_LIMIT):
            conditions = [of_run(actions, run), actions.c.name.in_(chunk), _UNFINISHED]
            found = list(self._connection.execute(select(actions.c.name).where(*conditions)).scalars())
            if not found:
                continue
            statement = (
                update(actions)
                .where(of_run(actions, run), actions.c.name.in_(found), _UNFINISHED)
                .values(
                    phase=int(Phase.ABORTED),
                    abort_reason=reason,
                    aborted_by=aborted_by,
                    ended_at=at,
                    updated_at=at,
                    version=actions.c.version + 1,
                )
            )
            self._connection.execute(statement)
            marked.extend(found)
        return marked

    def unfinished_below(self, top: ActionId) -> list[str]:
        """Names of the descendants of `top` that are not terminal.

        An action that ends takes its unfinished children with it, so nothing unfinished hangs below
        a terminal one; the root, which everything hangs below, looks at the whole run all the same.
        """
        if top.is_root:
            statement = select(actions.c.name).where(
                of_run(actions, top.run_id), actions.c.name != top.name, _UNFINISHED
            )
            return list(self._connection.execute(statement).scalars())
        names: list[str] = []
        level = self._unfinished_children(top.run_id, [top.name])
        while level:
            names.extend(level)
            level = self._unfinished_children(top.run_id, level)
        return names

    def _unfinished_children(self, run: RunId, parents: list[str]) -> list[str]:
        found: list[str] = []
        for chunk in batched(parents, IN_LIMIT):
            conditions = [of_run(actions, run), actions.c.parent.in_(chunk), _UNFINISHED]
            found.extend(self._connection.execute(select(actions.c.name).where(*conditions)).scalars())
        return found

    def ancestors(self, row: ActionRow) -> list[ActionRow]:
        """Parent first, root last; at most as deep as the recursion is."""
        found: list[ActionRow] = []
        parent = row.parent_id
        while parent is not None:
            above = self.get(parent)
            if above is None:
                break
            found.append(above)
            parent = above.parent_id
        return found

    def _update(
        self,
        action: ActionId,
        sources: tuple[Phase, ...],
        version: int | None,
        changes: dict[str, Any],  # column -> value
    ) -> bool:
        statement = _guarded_update(tuple(changes), sources, version is not None)
        parameters = {f"set_{name}": value for name, value in changes.items()}
        parameters.update(p=action.project, d=action.domain, r=action.run, n=action.name, at_version=version)
        if version is None:
            del parameters["at_version"]
        return self._connection.execute(statement, parameters).rowcount > 0


@cache
def _guarded_update(names: tuple[str, ...], sources: tuple[Phase, ...], with_version: bool) -> Update:
    """One statement for each set of columns, so that its compiled form is found again."""
    conditions = [*_ID_CONDITIONS, actions.c.phase.in_([int(phase) for phase in sources])]
    if with_version:
        conditions.append(actions.c.version == bindparam("at_version"))
    values = {name: bindparam(f"set_{name}", type_=actions.c[name].type) for name in names}
    return update(actions).where(*conditions).values(version=actions.c.version + 1, **values)


def row_of(record: RowMapping) -> ActionRow:
    task = None
    if record["task_name"]:
        task = TaskId(record["task_project"], record["task_domain"], record["task_name"], record["task_version"])
    return ActionRow(
        id=ActionId(record["project"], record["domain"], record["run"], record["name"]),
        task=task,
        phase=Phase(record["phase"]),
        **{name: record[name] for name in _PLAIN},
    )


def values_of(row: ActionRow) -> dict[str, Any]:  # column -> value
    values: dict[str, Any] = {name: getattr(row, name) for name in _PLAIN}
    values.update(project=row.id.project, domain=row.id.domain, run=row.id.run, name=row.id.name, phase=int(row.phase))
    if row.task is not None:
        values.update(
            task_project=row.task.project,
            task_domain=row.task.domain,
            task_name=row.task.name,
            task_version=row.task.version,
        )
    return values


__all__ = ["Actions", "row_of", "values_of"]
