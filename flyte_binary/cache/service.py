"""CacheService v2: cached outputs and reservations for executors outside this server.

The executor inside works on the same tables within its own transactions, under the same keys
(`domain/cache_entries.py`). Every change that somebody may be waiting for is announced on `topics.CACHE`.
"""

from __future__ import annotations

from datetime import timedelta

from flyteidl2.cacheservice import cacheservice_pb2 as v1
from flyteidl2.cacheservice.v2 import cacheservice_pb2 as v2

from flyte_binary.cache.entries import make_row, may_replace, output_from_row
from flyte_binary.cache.requests import Base, require_key, require_output, require_owner
from flyte_binary.cache.reservations import Heartbeats, reservation_from_row
from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.errors import AlreadyExists, NotFound


class CacheService:
    def __init__(
        self, database: Database, clock: Clock, heartbeats: Heartbeats, *, across_projects: bool = False
    ) -> None:
        """With `across_projects` all projects and domains share their entries."""
        self._database = database
        self._clock = clock
        self._heartbeats = heartbeats
        self._across_projects = across_projects

    async def get(self, request: v2.GetCacheRequest, _context: object) -> v1.GetCacheResponse:
        key = self._key(request.base_request, request.identifier)
        row = await self._database.point(lambda tx: tx.cache.get(key))
        if row is None:
            raise _no_entry(request.base_request.key)
        return v1.GetCacheResponse(output=output_from_row(row))

    async def put(self, request: v2.PutCacheRequest, _context: object) -> v1.PutCacheResponse:
        """An entry that stands is kept, unless the caller asks to replace it (`entries.may_replace`)."""
        base = request.base_request
        key = self._key(base, request.identifier)
        require_output(base.output)
        now = self._clock.now()

        def operation(tx: Transaction) -> None:
            if tx.cache.put_new(make_row(key, base.output, None, now=now)):
                tx.changed(topics.CACHE, (key,))
                return
            existing = tx.cache.get(key)
            if existing is not None and not may_replace(existing, base.overwrite, now=now):
                raise AlreadyExists(
                    f"base_request.key: the cache has an entry for {base.key!r}; set overwrite to replace it"
                )
            tx.cache.put(make_row(key, base.output, existing, now=now))
            tx.changed(topics.CACHE, (key,))

        await self._database.write(operation)
        return v1.PutCacheResponse()

    async def delete(self, request: v2.DeleteCacheRequest, _context: object) -> v1.DeleteCacheResponse:
        """Forgets the entry; the outputs it points to stay, for runs that refer to them."""
        key = self._key(request.base_request, request.identifier)
        if not await self._database.write(lambda tx: tx.cache.delete(key)):
            raise _no_entry(request.base_request.key)
        return v1.DeleteCacheResponse()

    async def get_or_extend_reservation(
        self, request: v2.GetOrExtendReservationRequest, _context: object
    ) -> v1.GetOrExtendReservationResponse:
        """Answers with whoever holds the reservation now, which need not be the caller."""
        base = request.base_request
        key = self._key(base, request.identifier)
        owner = require_owner(base.owner_id)
        interval = self._heartbeats.granted(base.heartbeat_interval)
        now = self._clock.now()
        holder = await self._database.write(
            lambda tx: tx.cache.reserve(
                key,
                owner,
                at=now,
                heartbeat_seconds=interval // timedelta(seconds=1),
                expires_at=self._heartbeats.expiry(interval, now=now),
            )
        )
        reservation = reservation_from_row(holder, self._heartbeats, now=now)
        return v1.GetOrExtendReservationResponse(reservation=reservation)

    async def release_reservation(
        self, request: v2.ReleaseReservationRequest, _context: object
    ) -> v1.ReleaseReservationResponse:
        """Somebody else's reservation, or none, is left alone and is no error."""
        key = self._key(request.base_request, request.identifier)
        owner = require_owner(request.base_request.owner_id)

        def operation(tx: Transaction) -> None:
            if tx.cache.release(key, owner):
                tx.changed(topics.CACHE, (key,))

        await self._database.write(operation)
        return v1.ReleaseReservationResponse()

    def _key(self, base: Base, identifier: v2.Identifier) -> str:
        return require_key(base, identifier, across_projects=self._across_projects)


def _no_entry(key: str) -> NotFound:
    return NotFound(f"base_request.key: the cache has no entry for {key!r}")
