"""The cache as the executor uses it: look up before, reserve if serializable, store after.

A reservation that an action holds lives exactly as long as the action is not terminal; there is no
heartbeat that could be lost. A hit whose `outputs.pb` is gone counts as a miss.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from flyteidl2.core import catalog_pb2

from flyte_binary.db.moves import reservation_owner
from flyte_binary.db.rows import ActionRow, CacheRow, ReservationRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import locations, topics
from flyte_binary.domain.cache_entries import KEY_LIMIT, shared_key, stored_key
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.task_limits import duration_of
from flyte_binary.executor.facts import RunFacts, TaskFacts
from flyte_binary.storage.store import ObjectStore

HIT = catalog_pb2.CACHE_HIT
MISS = catalog_pb2.CACHE_MISS
POPULATED = catalog_pb2.CACHE_POPULATED
SKIPPED = catalog_pb2.CACHE_SKIPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlan:
    """How one action uses the cache."""

    key: str
    serializable: bool
    overwrite: bool
    max_age: timedelta
    """Zero is no limit."""


def plan_for(row: ActionRow, task: TaskFacts, run: RunFacts) -> CachePlan | None:
    metadata = task.spec.task_template.metadata
    key = shared_key(row.cache_key) if run.shares_cache else stored_key(row.id.project, row.id.domain, row.cache_key)
    if not metadata.discoverable or not row.cache_key or len(key) > KEY_LIMIT:
        return None
    return CachePlan(
        key=key,
        serializable=metadata.cache_serializable,
        overwrite=run.overwrite_cache,
        max_age=duration_of(metadata.cache_max_age),
    )


class Caching:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._waiting: dict[str, set[ActionId]] = {}

    async def usable(self, entry: CacheRow | None, plan: CachePlan, *, now: int) -> str | None:
        """The prefix of cached outputs, or None for a miss."""
        if entry is None or plan.overwrite or _too_old(entry, plan, now):
            return None
        prefix = entry.output_uri.removesuffix(f"/{locations.OUTPUTS}")
        found = await self._store.stat(locations.join(prefix, locations.OUTPUTS))
        return prefix if found is not None else None

    def wait_for(self, key: str, action: ActionId) -> None:
        """Remember who is to be woken when the reservation of `key` is given back."""
        self._waiting.setdefault(key, set()).add(action)

    def released(self, key: str) -> set[ActionId]:
        return self._waiting.pop(key, set())


def reserve(tx: Transaction, plan: CachePlan, action: ActionId, *, now: int) -> ReservationRow | None:
    """None if the action holds the reservation now, else the one that is in its way."""
    owner = reservation_owner(action)
    held = tx.cache.reserve(plan.key, owner, at=now)
    return None if held.owner == owner else held


def remember(tx: Transaction, plan: CachePlan, output_prefix: str, *, now: int) -> None:
    """Store outputs; of two that computed the same the first stays, unless it is to be replaced."""
    entry = tx.cache.get(plan.key)
    if entry is not None and not plan.overwrite and not _too_old(entry, plan, now):
        return
    tx.cache.put(
        CacheRow(
            key=plan.key,
            output_uri=locations.join(output_prefix, locations.OUTPUTS),
            metadata=None,
            created_at=now,
            updated_at=now,
        )
    )
    tx.changed(topics.CACHE, (plan.key,))


def _too_old(entry: CacheRow, plan: CachePlan, now: int) -> bool:
    return plan.max_age > timedelta(0) and now - entry.updated_at > plan.max_age // timedelta(microseconds=1)
