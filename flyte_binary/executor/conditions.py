"""Conditions: paused until somebody signals them, or until their time is up."""

from __future__ import annotations

from datetime import timedelta

from flyteidl2.core import execution_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db import moves
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.task_limits import duration_of
from flyte_binary.executor.timing import soonest
from flyte_binary.executor.webhooks import Webhooks, pause_after

_MICROSECOND = timedelta(microseconds=1)


class Conditions:
    def __init__(self, database: Database, clock: Clock, webhooks: Webhooks) -> None:
        self._database = database
        self._clock = clock
        self._webhooks = webhooks

    async def reconcile(self, row: ActionRow) -> float | None:
        """The deadline counts from the very microsecond in which the condition was asked for (again: a later
        attempt of its parent may), so it never fires early."""
        condition = run_definition_pb2.ConditionAction.FromString(row.detail or b"")
        limit = duration_of(condition.timeout) // _MICROSECOND
        left = row.queued_at + limit + self._clock.slept_since(row.queued_at) - self._clock.now()
        if limit > 0 and left <= 0:
            await self._time_out(row, condition.name, limit)
            return None
        return soonest(left / 1_000_000 if limit > 0 else None, await self._tell(row, condition))

    async def _time_out(self, row: ActionRow, name: str, limit: int) -> None:
        error = execution_pb2.ExecutionError(
            code="ConditionTimedOut",
            message=f"the condition {name!r} was not signalled within {limit / 1_000_000:g} s",
            kind=execution_pb2.ExecutionError.USER,
        )
        now = self._clock.now()
        await self._database.write(
            lambda tx: moves.finish(tx, row, Phase.TIMED_OUT, at=now, error=error), run=row.run_id
        )

    async def _tell(self, row: ActionRow, condition: run_definition_pb2.ConditionAction) -> float | None:
        """Send the webhook if it is owed, which `not_before` says until it was accepted or given up."""
        if row.not_before is None:
            return None
        wait = row.not_before - self._clock.now()
        if wait > 0:
            return wait / 1_000_000
        problem = await self._webhooks.send(row.id, condition.webhook)
        failures = row.infrastructure_failures + 1 if problem else 0
        pause = pause_after(failures) if problem else None
        now = self._clock.now()
        due = None if pause is None else now + int(pause * 1_000_000)
        await self._database.write(
            lambda tx: tx.actions.update(row.id, at=now, not_before=due, infrastructure_failures=failures),
            run=row.run_id,
        )
        return pause
