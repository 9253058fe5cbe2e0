"""Leases of shards, timed by the database's clock: servers need not agree on the time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, select, update

from flyte_binary.db.dialect import for_share, insert, insert_if_absent, now_micros
from flyte_binary.db.prepared import Prepared
from flyte_binary.db.tables import servers, shard_leases

_HOLDS = Prepared(
    for_share(
        select(shard_leases.c.shard).where(
            shard_leases.c.shard == bindparam("shard"),
            shard_leases.c.epoch == bindparam("epoch"),
            shard_leases.c.owner == bindparam("owner"),
        )
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    id: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    shard: int
    owner: str
    epoch: int
    free: bool
    """Given back, or run out."""


class Leases:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def beat(self, server: ServerRow, *, lease_micros: int) -> list[ServerRow]:
        """The server lives for another while; returns all that do, itself included."""
        now = now_micros(self._connection)
        values = {"id": server.id, "node": server.node, "started_at": now, "expires_at": now + lease_micros}
        statement = insert(self._connection, servers).values(**values)
        self._connection.execute(
            statement.on_conflict_do_update(index_elements=["id"], set_={"expires_at": now + lease_micros})
        )
        self._connection.execute(delete(servers).where(servers.c.expires_at <= now))
        found = self._connection.execute(select(servers.c.id, servers.c.node).order_by(servers.c.id))
        return [ServerRow(id=name, node=node) for name, node in found]

    def others(self, node: str) -> list[ServerRow]:
        """Those that live on another node."""
        statement = select(servers.c.id, servers.c.node).where(
            servers.c.expires_at > now_micros(self._connection), servers.c.node != node
        )
        return [ServerRow(id=name, node=node) for name, node in self._connection.execute(statement)]

    def leave(self, server: str) -> None:
        self._connection.execute(delete(servers).where(servers.c.id == server))

    def all(self, shards: int) -> list[LeaseRow]:
        """Of every shard, locked until the commit: whoever changes hands does it one after the other."""
        columns = (shard_leases.c.shard, shard_leases.c.owner, shard_leases.c.epoch, shard_leases.c.expires_at)
        statement = select(*columns).order_by(shard_leases.c.shard).with_for_update()
        rows = self._connection.execute(statement).all()
        if len(rows) < shards:
            for shard in range(shards):
                empty = {"shard": shard, "owner": "", "epoch": 0, "expires_at": 0}
                insert_if_absent(self._connection, shard_leases, empty)
            rows = self._connection.execute(statement).all()
        now = now_micros(self._connection)
        return [
            LeaseRow(shard=shard, owner=owner, epoch=epoch, free=not owner or expires_at <= now)
            for shard, owner, epoch, expires_at in rows
        ]

    def renew(self, owner: str, shards: Iterable[int], *, lease_micros: int) -> None:
        """Of shards that the owner holds."""
        self._change(owner, shards, expires_at=now_micros(self._connection) + lease_micros)

    def give_back(self, owner: str, shards: Iterable[int]) -> None:
        self._change(owner, shards, expires_at=0)

    def take(self, lease: LeaseRow, owner: str, *, lease_micros: int) -> int:
        """A free one; returns its new epoch."""
        epoch = lease.epoch + 1
        self._connection.execute(
            update(shard_leases)
            .where(shard_leases.c.shard == lease.shard)
            .values(owner=owner, epoch=epoch, expires_at=now_micros(self._connection) + lease_micros)
        )
        return epoch

    def holds(self, owner: str, shard: int, epoch: int) -> bool:
        """And does so until the commit."""
        parameters = {"owner": owner, "shard": shard, "epoch": epoch}
        return _HOLDS.first(self._connection, parameters) is not None

    def _change(self, owner: str, shards: Iterable[int], *, expires_at: int) -> None:
        mine = sorted(shards)
        if mine:
            self._connection.execute(
                update(shard_leases)
                .where(shard_leases.c.shard.in_(mine), shard_leases.c.owner == owner)
                .values(expires_at=expires_at)
            )
