"""The `actions` table: insert, read, and the guarded moves between phases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from typing import Any  # column values of one row have many types

from flyteidl2.workflow import run_definition_pb2
from sqlalchemy import Connection, RowMapping, bindparam, exists, func, literal_column, select, tuple_, update

from flyte_binary.db.dialect import for_share, for_update, insert_if_absent
from flyte_binary.db.prepared import Prepared, Record, one_of
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.statements import IN_LIMIT, batched, is_action, is_run, of_action, of_run, parameters_of
from flyte_binary.db.tables import actions
from flyte_binary.domain.ids import ActionId, RunId, TaskId
from flyte_binary.domain.phases import ACTIVE, Phase, sources_of

_SPECIAL = frozenset({"id", "task", "phase"})
_PLAIN = tuple(field.name for field in fields(ActionRow) if field.name not in _SPECIAL)
_TASK = ("task_project", "task_domain", "task_name", "task_version")
_COLUMNS = [actions.c[name] for name in ("project", "domain", "run", "name", "phase", *_TASK, *_PLAIN)]

_UNFINISHED_PHASES = tuple(sorted(ACTIVE))
_UNFINISHED = one_of(actions.c.phase, _UNFINISHED_PHASES)
_FAILED = one_of(actions.c.phase, (Phase.FAILED, Phase.TIMED_OUT, Phase.ABORTED))
_OLDEST_FIRST = (actions.c.created_at, actions.c.name)
_CHILD = actions.c.parent == bindparam("n")
_FEW = 16
"""Up to so many rows, reading them one by one is faster than a statement of that length."""

_ONE = Prepared(select(*_COLUMNS).where(is_action(actions)))
_ONE_SHARED = Prepared(for_share(select(*_COLUMNS).where(is_action(actions))))
_ONE_LOCKED = Prepared(for_update(select(*_COLUMNS).where(is_action(actions))))
_CHILDREN = Prepared(select(*_COLUMNS).where(is_run(actions), _CHILD).order_by(*_OLDEST_FIRST))
_UNFINISHED_CHILDREN = Prepared(select(*_COLUMNS).where(is_run(actions), _CHILD, _UNFINISHED).order_by(*_OLDEST_FIRST))
_FAILED_CHILDREN = Prepared(select(*_COLUMNS).where(is_run(actions), _CHILD, _FAILED, actions.c.superseded.is_(False)))
_NAMES_OF_UNFINISHED_CHILDREN = Prepared(select(actions.c.name).where(is_run(actions), _CHILD, _UNFINISHED))
_NAMES_OF_UNFINISHED_OTHERS = Prepared(
    select(actions.c.name).where(is_run(actions), actions.c.name != bindparam("n"), _UNFINISHED)
)


_CHILD_OF = actions.alias("child")
_ACTIVE = Prepared(
    select(func.count())
    .select_from(actions)
    .where(
        is_run(actions),
        one_of(actions.c.phase, (Phase.INITIALIZING, Phase.RUNNING)),
        one_of(actions.c.action_type, (run_definition_pb2.ACTION_TYPE_TASK,)),
        ~exists().where(
            *(_CHILD_OF.c[name] == actions.c[name] for name in ("project", "domain", "run")),
            _CHILD_OF.c.parent == actions.c.name,
            one_of(_CHILD_OF.c.phase, _UNFINISHED_PHASES),
        ),
    )
)


class Actions:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, row: ActionRow) -> bool:
        """False, and nothing is changed, if an action of that id exists."""
        return insert_if_absent(self._connection, actions, values_of(row))

    def get(self, action: ActionId) -> ActionRow | None:
        record = _ONE.first(self._connection, parameters_of(action))
        return None if record is None else _row_of(record)

    def get_many(self, run: RunId, names: Iterable[str]) -> list[ActionRow]:
        """Those of the named actions that exist, in no order."""
        wanted = list(names)
        if len(wanted) <= _FEW:
            return [row for name in wanted if (row := self.get(run.action(name))) is not None]
        rows: list[ActionRow] = []
        for chunk in batched(wanted, IN_LIMIT):
            statement = select(actions).where(of_run(actions, run), actions.c.name.in_(chunk))
            rows.extend(row_of(record) for record in self._connection.execute(statement).mappings())
        return rows

    def lock(self, action: ActionId) -> ActionRow | None:
        """`get`, holding the row against other writers until the commit."""
        record = _ONE_LOCKED.first(self._connection, parameters_of(action))
        return None if record is None else _row_of(record)

    def lock_shared(self, action: ActionId) -> ActionRow | None:
        """`get`, keeping others from changing the row until the commit; any number may do so at once."""
        record = _ONE_SHARED.first(self._connection, parameters_of(action))
        return None if record is None else _row_of(record)

    def children(self, parent: ActionId, *, unfinished_only: bool = False) -> list[ActionRow]:
        statement = _UNFINISHED_CHILDREN if unfinished_only else _CHILDREN
        return [_row_of(record) for record in statement.all(self._connection, parameters_of(parent))]

    def page_of_run(self, run: RunId, *, after: tuple[int, str] | None, limit: int) -> list[ActionRow]:
        """Actions of a run by (created_at, name), starting behind `after`."""
        conditions = [of_run(actions, run)]
        if after is not None:
            conditions.append(tuple_(actions.c.created_at, actions.c.name) > after)
        statement = select(actions).where(*conditions).order_by(*_OLDEST_FIRST).limit(limit)
        return [row_of(record) for record in self._connection.execute(statement).mappings()]

    def unfinished(self) -> list[ActionRow]:
        """Every action that is not terminal: what a starting executor looks at first."""
        statement = select(actions).where(_UNFINISHED)
        return [row_of(record) for record in self._connection.execute(statement).mappings()]

    def active(self, run: RunId) -> int:
        """Tasks of the run that are launched and do not merely wait for children."""
        record = _ACTIVE.first(self._connection, parameters_of(run.root()))
        return 0 if record is None else record[0]

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
        return [_row_of(record) for record in _FAILED_CHILDREN.all(self._connection, parameters_of(parent))]

    def mark_aborted(
        self, run: RunId, names: Iterable[str], *, at: int, reason: str | None, aborted_by: bytes | None = None
    ) -> list[str]:
        """Mark those of the named actions that are not terminal; returns the ones that were marked."""
        marked: list[str] = []
        for chunk in batched(names, IN_LIMIT):
            statement = (
                update(actions)
                .where(of_run(actions, run), actions.c.name.in_(chunk), _UNFINISHED)
                .values(
                    phase=int(Phase.ABORTED),
                    abort_reason=reason,
                    aborted_by=aborted_by,
                    ended_at=at,
                    updated_at=at,
                    version=actions.c.version + 1,
                )
                .returning(actions.c.name)
            )
            marked.extend(self._connection.execute(statement).scalars())
        return marked

    def unfinished_below(self, top: ActionId) -> list[str]:
        """Names of the descendants of `top` that are not terminal.

        An action that ends takes its unfinished children with it, so nothing unfinished hangs below
        a terminal one; the root, which everything hangs below, looks at the whole run all the same.
        """
        if top.is_root:
            return [name for (name,) in _NAMES_OF_UNFINISHED_OTHERS.all(self._connection, parameters_of(top))]
        names: list[str] = []
        level = self.unfinished_children(top.run_id, [top.name])
        while level:
            names.extend(level)
            level = self.unfinished_children(top.run_id, level)
        return names

    def unfinished_children(self, run: RunId, parents: list[str]) -> list[str]:
        """Names of those of any of the parents."""
        if len(parents) == 1:
            parameters = parameters_of(run.action(parents[0]))
            return [name for (name,) in _NAMES_OF_UNFINISHED_CHILDREN.all(self._connection, parameters)]
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
        parameters.update(parameters_of(action), at_version=version)
        return statement.execute(self._connection, parameters) > 0


@cache
def _guarded_update(names: tuple[str, ...], sources: tuple[Phase, ...], with_version: bool) -> Prepared:
    """One statement for each set of columns."""
    conditions = [is_action(actions), one_of(actions.c.phase, sources)]
    if with_version:
        conditions.append(actions.c.version == bindparam("at_version"))
    values = {name: bindparam(f"set_{name}", type_=actions.c[name].type) for name in names}
    return Prepared(
        update(actions).where(*conditions).values(version=actions.c.version + literal_column("1"), **values)
    )


def _row_of(record: Record) -> ActionRow:
    """`record` is in the order of `_COLUMNS`, as the driver returns it."""
    project, domain, run, name, phase, task_project, task_domain, task_name, task_version, *plain = record
    values = dict(zip(_PLAIN, plain, strict=True))
    values["superseded"] = bool(values["superseded"])
    return ActionRow(
        id=ActionId(project, domain, run, name),
        task=TaskId(task_project, task_domain, task_name, task_version) if task_name else None,
        phase=Phase(phase),
        **values,
    )


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
