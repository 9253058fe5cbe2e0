"""Events of attempts that executors outside this server report.

They are what the details of an action are made of and never change its phase; they may come in before the action.
"""

from __future__ import annotations

from collections.abc import Iterable

from flyteidl2.workflow import run_definition_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.rows import EventRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.rpc.require import require_action_id

_LARGEST = 2**31 - 1
"""Of the columns `attempt` and `version`."""


class EventRecorder:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def record(self, events: Iterable[run_definition_pb2.ActionEvent]) -> None:
        """All of them or none, in one transaction; of repeated ones (attempt, phase, version) the first stands.

        Raises `InvalidArgument`.
        """
        now = self._clock.now()
        await self._write([_row_of(event, f"events[{index}]", now) for index, event in enumerate(events)])

    async def record_one(self, event: run_definition_pb2.ActionEvent) -> None:
        """Raises `InvalidArgument`."""
        await self._write([_row_of(event, "event", self._clock.now())])

    async def _write(self, rows: list[EventRow]) -> None:
        if not rows:
            return

        def operation(tx: Transaction) -> None:
            tx.events.record(rows)
            for action in {row.action for row in rows}:
                tx.changed(topics.run(action.run_id), (action.name,))

        await self._database.write(operation, run=rows[0].action.run_id)


def _row_of(event: run_definition_pb2.ActionEvent, field: str, now: int) -> EventRow:
    action = require_action_id(event.id, f"{field}.id")
    if not 0 < event.attempt <= _LARGEST:
        raise InvalidArgument(f"{field}.attempt: attempts are counted from 1, got {event.attempt}")
    if event.version > _LARGEST:
        raise InvalidArgument(f"{field}.version must be at most {_LARGEST}, got {event.version}")
    return EventRow(
        action=action,
        attempt=event.attempt,
        phase=int(event.phase),
        version=event.version,
        info=event.SerializeToString(),
        created_at=now,
    )
