"""Passes over the actions of this server's shards, and a glance at those of others.

A glance keeps up who waits for whom: a parent of ours may wait for children that other servers work on.
"""

from __future__ import annotations

import time

import structlog

from flyte_binary.control.shards import Fenced, Shards, acting
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.ids import ActionId
from flyte_binary.executor.admission import Admission
from flyte_binary.executor.facts import Facts, RunFacts
from flyte_binary.executor.leftovers import Leftovers
from flyte_binary.executor.reconciler import Reconciler
from flyte_binary.executor.waiting import Waiting

log = structlog.get_logger(__name__)


class ShardedReconciler:
    def __init__(
        self,
        reconciler: Reconciler,
        shards: Shards,
        *,
        database: Database,
        admission: Admission,
        waiting: Waiting,
        leftovers: Leftovers,
        facts: Facts,
    ) -> None:
        self._reconciler = reconciler
        self._shards = shards
        self._database = database
        self._admission = admission
        self._waiting = waiting
        self._leftovers = leftovers
        self._facts = facts

    async def reconcile(self, action: ActionId) -> float | None:
        """As `Reconciler.reconcile`; None as well if the action is another server's."""
        lease = self._shards.lease_of(action)
        if lease is None:
            await self._glance(action)
            return None
        try:
            with acting(lease):
                return await self._reconciler.reconcile(action)
        except Fenced:
            log.info("another server has taken over", action=str(action))
            return None

    async def _glance(self, action: ActionId) -> None:
        """Whoever works on it counts its share and sees to what is left of it."""
        self._admission.release(action, now=time.monotonic())
        self._leftovers.not_ours(action)
        found = await self._database.point(lambda tx: self._load(tx, action))
        if found is not None:
            self._waiting.note(*found)

    def _load(self, tx: Transaction, action: ActionId) -> tuple[ActionRow, RunFacts] | None:
        row = tx.actions.get(action)
        run = None if row is None else self._facts.run(tx, action.run_id)
        return None if row is None or run is None else (row, run)
