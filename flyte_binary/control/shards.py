"""Which actions this server works on.

Actions are divided into shards by their names. Where several servers share a database each shard is leased to one of
them, in about equal parts; a server that dies loses its shards when their leases run out, one that stops gives them
back, and one that comes gets its part from the others. What the holder of a lease writes is fenced: the transaction
checks that the lease is still the one under which the decision was made.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

import structlog

from flyte_binary.db.database import Database, Operation
from flyte_binary.db.leases import LeaseRow, ServerRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.errors import FlyteError, Unavailable
from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.live.hub import Hub

log = structlog.get_logger(__name__)

T = TypeVar("T")

SHARDS = 64
LEASE = timedelta(seconds=10)
MARGIN = timedelta(seconds=2)
"""Before the end of a lease its holder begins nothing any more."""
_BEATS_PER_LEASE = 4


@dataclass(frozen=True, slots=True)
class Lease:
    shard: int
    epoch: int


class Fenced(Unavailable):
    """The shard has another owner by now; whatever was decided is dropped."""


class Shards(Protocol):
    def lease_of(self, action: ActionId) -> Lease | None:
        """None if another server works on it, or nobody for the moment."""
        ...

    async def run(self, taken: Callable[[], None], changed: Callable[[int], None]) -> None:
        """Keep the leases until cancelled, then give them back. `taken` is called after new ones came, `changed` with
        the number of servers that live."""
        ...


class EveryShard:
    """Of a server that is alone on its database."""

    _ALL = Lease(shard=0, epoch=0)

    def lease_of(self, action: ActionId) -> Lease | None:  # noqa: ARG002  # a protocol's argument
        return self._ALL

    async def run(self, taken: Callable[[], None], changed: Callable[[int], None]) -> None:  # noqa: ARG002  # as above
        await asyncio.Event().wait()


class LeasedShards:
    def __init__(
        self, database: Database, hub: Hub, server: ServerRow, *, lease: timedelta = LEASE, margin: timedelta = MARGIN
    ) -> None:
        self._database = database
        self._hub = hub
        self._server = server
        self._lease = lease
        self._margin = margin
        self._held: dict[int, Lease] = {}
        self._until = 0.0
        """On the monotonic clock: when to begin nothing any more."""

    def lease_of(self, action: ActionId) -> Lease | None:
        if time.monotonic() >= self._until:
            return None
        return self._held.get(shard_of(action))

    def held(self) -> frozenset[int]:
        return frozenset(self._held)

    async def run(self, taken: Callable[[], None], changed: Callable[[int], None]) -> None:
        with self._hub.subscribe(topics.SHARDS) as news:
            try:
                while True:
                    await self._beat_once(taken, changed)
                    try:
                        async with asyncio.timeout(self._lease.total_seconds() / _BEATS_PER_LEASE):
                            await news.wait()
                    except TimeoutError:
                        continue
            finally:
                await self._leave()

    async def _beat_once(self, taken: Callable[[], None], changed: Callable[[int], None]) -> None:
        began = time.monotonic()
        before = self.held()
        try:
            servers, held = await self._database.write(self._beat)
        except FlyteError as error:
            log.warning("the leases of this server cannot be renewed", reason=str(error))
            return
        self._held = held
        self._until = began + (self._lease - self._margin).total_seconds()
        changed(servers)
        if self.held() - before:
            log.info("shards taken", shards=len(self.held() - before), held=len(held), servers=servers)
            taken()

    def _beat(self, tx: Transaction) -> tuple[int, dict[int, Lease]]:
        micros = int(self._lease.total_seconds() * 1_000_000)
        me = self._server.id
        leases = tx.leases.all(SHARDS)
        living = [server.id for server in tx.leases.beat(self._server, lease_micros=micros)]
        part = part_of(me, living)
        mine = [lease for lease in leases if lease.owner == me and lease.epoch == self._epoch(lease)]
        surplus = mine[part:]
        if surplus:
            tx.leases.give_back(me, [lease.shard for lease in surplus])
            tx.changed(topics.SHARDS, ("free",))
        held = {lease.shard: Lease(lease.shard, lease.epoch) for lease in mine[:part]}
        tx.leases.renew(me, held, lease_micros=micros)
        for lease in self._wanted(leases, part - len(held)):
            epoch = tx.leases.take(lease, me, lease_micros=micros)
            held[lease.shard] = Lease(lease.shard, epoch)
        return len(living), held

    def _epoch(self, lease: LeaseRow) -> int | None:
        """Under which this server holds the shard, as far as it knows."""
        held = self._held.get(lease.shard)
        return None if held is None else held.epoch

    def _wanted(self, leases: Iterable[LeaseRow], number: int) -> list[LeaseRow]:
        return [lease for lease in leases if lease.free and lease.shard not in self._held][: max(0, number)]

    async def _leave(self) -> None:
        held, self._held = self._held, {}
        self._until = 0.0

        def leave(tx: Transaction) -> None:
            tx.leases.all(SHARDS)
            tx.leases.give_back(self._server.id, held)
            tx.leases.leave(self._server.id)
            tx.changed(topics.SHARDS, ("free",))

        try:
            async with asyncio.timeout(2):
                await self._database.write(leave)
        except (FlyteError, TimeoutError) as error:
            log.warning("the shards of this server are not given back", reason=str(error))


def shard_of(action: ActionId) -> int:
    """The same on every server and in every version."""
    return zlib.crc32(f"{action.project}/{action.domain}/{action.run}/{action.name}".encode()) % SHARDS


def part_of(server: str, living: Iterable[str]) -> int:
    """How many shards a server should hold: equal parts, the remainder to the first by name."""
    order = sorted({server, *living})
    share, rest = divmod(SHARDS, len(order))
    return share + (1 if order.index(server) < rest else 0)


_acting: ContextVar[Lease | None] = ContextVar("lease of the pass", default=None)


@contextmanager
def acting(lease: Lease) -> Generator[None]:
    """What is written inside is written under this lease."""
    token = _acting.set(lease)
    try:
        yield
    finally:
        _acting.reset(token)


class FencedDatabase:
    """A database whose writes within `acting` hold only as long as the lease does."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def read(self, operation: Operation[T]) -> T:
        return await self._database.read(operation)

    async def point(self, operation: Operation[T]) -> T:
        return await self._database.point(operation)

    async def write(self, operation: Operation[T], *, run: RunId | None = None) -> T:
        lease = _acting.get()
        if lease is None:
            return await self._database.write(operation, run=run)

        def fenced(tx: Transaction) -> T:
            if not tx.leases.holds(self._owner, lease.shard, lease.epoch):
                raise Fenced("another server works on this action now")
            return operation(tx)

        return await self._database.write(fenced, run=run)

    async def ping(self) -> None:
        await self._database.ping()

    async def close(self) -> None:
        await self._database.close()
