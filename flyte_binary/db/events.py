"""The `action_events` table: what happened to attempts, append-only."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from flyte_binary.db.dialect import insert
from flyte_binary.db.rows import EventRow
from flyte_binary.db.statements import of_action
from flyte_binary.db.tables import action_events
from flyte_binary.domain.ids import ActionId

_ORDER = (action_events.c.attempt, action_events.c.phase, action_events.c.version)


class Events:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def record(self, rows: Iterable[EventRow]) -> None:
        """The first event of an (attempt, phase, version) wins; a repetition is dropped."""
        values = [
            {
                "project": row.action.project,
                "domain": row.action.domain,
                "run": row.action.run,
                "name": row.action.name,
                "attempt": row.attempt,
                "phase": row.phase,
                "version": row.version,
                "info": row.info,
                "created_at": row.created_at,
            }
            for row in rows
        ]
        if values:
            self._connection.execute(insert(self._connection, action_events).on_conflict_do_nothing(), values)

    def of_action(self, action: ActionId) -> list[EventRow]:
        """All events of an action, by attempt, phase and version."""
        statement = select(action_events).where(of_action(action_events, action)).order_by(*_ORDER)
        return [
            EventRow(
                action=action,
                attempt=record["attempt"],
                phase=record["phase"],
                version=record["version"],
                info=record["info"],
                created_at=record["created_at"],
            )
            for record in self._connection.execute(statement).mappings()
        ]

    def of_attempt(self, action: ActionId, attempt: int) -> list[EventRow]:
        return [row for row in self.of_action(action) if row.attempt == attempt]
