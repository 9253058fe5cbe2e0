"""The `attempts` table: one row a launch, and what is still owed for it."""

from __future__ import annotations

from typing import Any  # column values of one row have many types

from sqlalchemy import Connection, RowMapping, select, update

from flyte_binary.db.dialect import insert_if_absent
from flyte_binary.db.rows import AttemptRow
from flyte_binary.db.statements import of_action
from flyte_binary.db.tables import attempts
from flyte_binary.domain.ids import ActionId, AttemptId


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
        statement = select(attempts).where(of_action(attempts, attempt.action), attempts.c.attempt == attempt.number)
        record = self._connection.execute(statement).mappings().first()
        return None if record is None else _row_of(record)

    def of_action(self, action: ActionId) -> list[AttemptRow]:
        statement = select(attempts).where(of_action(attempts, action)).order_by(attempts.c.attempt)
        return [_row_of(record) for record in self._connection.execute(statement).mappings()]

    def open_of_action(self, action: ActionId) -> list[AttemptRow]:
        """Attempts for which something is owed."""
        statement = (
            select(attempts)
            .where(of_action(attempts, action), attempts.c.archived_at.is_(None))
            .order_by(attempts.c.attempt)
        )
        return [_row_of(record) for record in self._connection.execute(statement).mappings()]

    def all_open(self) -> list[AttemptRow]:
        statement = select(attempts).where(attempts.c.archived_at.is_(None))
        return [_row_of(record) for record in self._connection.execute(statement).mappings()]

    def update(self, attempt: AttemptId, **changes: Any) -> bool:  # column -> value
        statement = (
            update(attempts)
            .where(of_action(attempts, attempt.action), attempts.c.attempt == attempt.number)
            .values(**changes)
        )
        return self._connection.execute(statement).rowcount > 0


def _row_of(record: RowMapping) -> AttemptRow:
    action = ActionId(record["project"], record["domain"], record["run"], record["name"])
    return AttemptRow(
        id=AttemptId(action, record["attempt"]),
        nonce=record["nonce"],
        node=record["node"],
        output_prefix=record["output_prefix"],
        launched_at=record["launched_at"],
        running_at=record["running_at"],
        ended_at=record["ended_at"],
        archived_at=record["archived_at"],
        log_uri=record["log_uri"],
    )
