"""Conditions: paused until somebody signals them, or until their time is up."""

from __future__ import annotations

from flyteidl2.core import execution_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db import moves
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.phases import Phase


class Conditions:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def reconcile(self, row: ActionRow) -> float | None:
        """The deadline counts from the very microsecond of the creation, so it never fires early."""
        condition = run_definition_pb2.ConditionAction.FromString(row.detail or b"")
        limit = condition.timeout.seconds * 1_000_000 + condition.timeout.nanos // 1000
        if limit <= 0:
            return None
        now = self._clock.now()
        left = row.created_at + limit + self._clock.slept_since(row.created_at) - now
        if left > 0:
            return left / 1_000_000
        error = execution_pb2.ExecutionError(
            code="ConditionTimedOut",
            message=f"the condition {condition.name!r} was not signalled within {limit / 1_000_000:g} s",
            kind=execution_pb2.ExecutionError.USER,
        )
        await self._database.write(
            lambda tx: moves.finish(tx, row, Phase.TIMED_OUT, at=now, error=error), run=row.run_id
        )
        return None
