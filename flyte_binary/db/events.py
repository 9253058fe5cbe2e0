"""The `action_events` table: what happened to attempts, append-only."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from flyte_binary.db.dialect import prepared_insert
from flyte_binary.db.prepared import Prepared
from flyte_binary.db.rows import EventRow
from flyte_binary.db.statements import is_action, parameters_of
from flyte_binary.db.tables import action_events
from flyte_binary.domain.ids import ActionId

_ORDER = (action_events.c.attempt, action_events.c.phase, action_events.c.version)
_OF_ACTION = Prepared(
    select(*_ORDER, action_events.c.info, action_events.c.created_at).where(is_action(action_events)).order_by(*_ORDER)
)


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
            prepared_insert(self._connection, action_events, values[0]).execute_many(self._connection, values)

    def of_action(self, action: ActionId) -> list[EventRow]:
        """All events of an action, by attempt, phase and version."""
        return [
            EventRow(action=action, attempt=attempt, phase=phase, version=version, info=info, created_at=created_at)
            for attempt, phase, version, info, created_at in _OF_ACTION.all(self._connection, parameters_of(action))
        ]

    def of_attempt(self, action: ActionId, attempt: int) -> list[EventRow]:
        return [row for row in self.of_action(action) if row.attempt == attempt]
