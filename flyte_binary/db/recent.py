"""What has changed lately, read from the rows: repairs hints between servers that were lost."""

from __future__ import annotations

import time

from sqlalchemy import or_, select

from flyte_binary.db.database import Database
from flyte_binary.db.tables import actions
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.topics import Key, Topic

Change = tuple[Topic, Key]

MARGIN_SECONDS = 60.0
"""Rows carry the clocks of the servers that wrote them, and are seen only after their commit."""


class RecentChanges:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._looked_at = time.time()

    async def __call__(self) -> set[Change]:
        """Since the last call that succeeded, and a margin."""
        now = time.time()
        since = int((self._looked_at - MARGIN_SECONDS) * 1_000_000)
        found = await self._database.read(lambda tx: _changed_since(tx, since))
        self._looked_at = now
        return found


def _changed_since(tx: Transaction, since: int) -> set[Change]:
    """With those who wait for somebody's cached outputs: their hint is about another row."""
    waiting = actions.c.phase == int(Phase.WAITING_FOR_RESOURCES)
    statement = select(actions.c.project, actions.c.domain, actions.c.run, actions.c.name, actions.c.parent).where(
        or_(actions.c.updated_at >= since, waiting)
    )
    for project, domain, run, name, parent in tx.connection.execute(statement):
        tx.changed_action(ActionId(project, domain, run, name), parent)
    return tx.changes
