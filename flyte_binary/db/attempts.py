"""The `attempts` table: one row a launch, and what is still owed for it."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any  # column values of one row have many types

from sqlalchemy import Connection, bindparam, select, update

from flyte_binary.db.dialect import insert_if_absent
from flyte_binary.db.prepared import Prepared, Record
from flyte_binary.db.rows import AttemptRow
from flyte_binary.db.statements import is_action, parameters_of
from flyte_binary.db.tables import attempts
from flyte_binary.domain.ids import ActionId, AttemptId

_OTHERS = tuple(field.name for field in fields(AttemptRow) if field.name != "id")
_COLUMNS = [attempts.c[name] for name in ("project", "domain", "run", "name", "attempt", *_OTHERS)]
_NUMBER = attempts.c.attempt == bindparam("a")
_OPEN = attempts.c.archived_at.is_(None)

_ONE = Prepared(select(*_COLUMNS).where(is_action(attempts), _NUMBER))
_OF_ACTION = Prepared(select(*_COLUMNS).where(is_action(attempts)).order_by(attempts.c.attempt))
_OPEN_OF_ACTION = Prepared(select(*_COLUMNS).where(is_action(attempts), _OPEN).order_by(attempts.c.attempt))
_ALL_OPEN = Prepared(select(*_COLUMNS).where(_OPEN))


class Attempts:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, row: AttemptRow) -> bool:
        """False if that attempt was begun already."""
        action = row.id.action
        return insert_if_absent(
            self._connection,
            attempts,
            {
                "project": action.project,
                "domain": action.domain,
                "run": action.run,
                "name": action.name,
                "attempt": row.id.number,
                "nonce": row.nonce,
                "node": row.node,
                "output_prefix": row.output_prefix,
                "launched_at": row.launched_at,
            },
        )

    def get(self, attempt: AttemptId) -> AttemptRow | None:
        record = _ONE.first(self._connection, {**parameters_of(attempt.action), "a": attempt.number})
        return None if record is None else _row_of(record)

    def of_action(self, action: ActionId) -> list[AttemptRow]:
        return [_row_of(record) for record in _OF_ACTION.all(self._connection, parameters_of(action))]

    def open_of_action(self, action: ActionId) -> list[AttemptRow]:
        """Attempts for which something is owed."""
        return [_row_of(record) for record in _OPEN_OF_ACTION.all(self._connection, parameters_of(action))]

    def all_open(self) -> list[AttemptRow]:
        return [_row_of(record) for record in _ALL_OPEN.all(self._connection, {})]

    def update(self, attempt: AttemptId, **changes: Any) -> bool:  # column -> value
        parameters = {**parameters_of(attempt.action), "a": attempt.number}
        parameters.update((f"set_{name}", value) for name, value in changes.items())
        return _update(tuple(changes)).execute(self._connection, parameters) > 0


@cache
def _update(names: tuple[str, ...]) -> Prepared:
    values = {name: bindparam(f"set_{name}", type_=attempts.c[name].type) for name in names}
    return Prepared(update(attempts).where(is_action(attempts), _NUMBER).values(**values))


def _row_of(record: Record) -> AttemptRow:
    """`record` is in the order of the columns above."""
    project, domain, run, name, number, *others = record
    return AttemptRow(
        id=AttemptId(ActionId(project, domain, run, name), number), **dict(zip(_OTHERS, others, strict=True))
    )
