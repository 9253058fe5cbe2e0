"""Abort of a run or of one action: the mark on the whole subtree, in one transaction.

First commit wins: what has ended already stays as it ended. Stopping what still runs is owed by the
attempts (`archived_at IS NULL`) and done by the executor, now or after a restart.
"""

from __future__ import annotations

from flyte_binary.control.clock import Clock
from flyte_binary.db import moves
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import NotFound
from flyte_binary.domain.ids import ActionId


class Aborter:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def abort(self, action: ActionId, reason: str, aborted_by: bytes | None) -> None:
        """A second call, and one on an action that has ended, changes nothing. Raises `NotFound`."""
        now = self._clock.now()

        def operation(tx: Transaction) -> None:
            tx.actions.lock(action.run_id.root())
            row = tx.actions.get(action)
            if row is None:
                raise NotFound(f"action {action} does not exist")
            moves.abort(tx, row, at=now, reason=reason, aborted_by=aborted_by)

        await self._database.write(operation, run=action.run_id)
