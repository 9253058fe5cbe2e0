"""Cached outputs and the reservations of those who are computing them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any  # column values of one row have many types

from sqlalchemy import Connection, bindparam, delete, select

from flyte_binary.db.dialect import for_update, insert_if_absent, upsert
from flyte_binary.db.prepared import Prepared
from flyte_binary.db.rows import CacheRow, ReservationRow
from flyte_binary.db.tables import cache_outputs, cache_reservations

_ENTRY_COLUMNS = tuple(field.name for field in fields(CacheRow))
_RESERVATION_COLUMNS = tuple(field.name for field in fields(ReservationRow))

_ENTRY = Prepared(
    select(*(cache_outputs.c[name] for name in _ENTRY_COLUMNS)).where(cache_outputs.c.key == bindparam("k"))
)
_RESERVATION = Prepared(
    select(*(cache_reservations.c[name] for name in _RESERVATION_COLUMNS)).where(
        cache_reservations.c.key == bindparam("k")
    )
)
_RESERVATION_LOCKED = Prepared(
    for_update(
        select(*(cache_reservations.c[name] for name in _RESERVATION_COLUMNS)).where(
            cache_reservations.c.key == bindparam("k")
        )
    )
)
_HELD = Prepared(select(cache_reservations.c.key).where(cache_reservations.c.owner == bindparam("o")))


class CacheEntries:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, key: str) -> CacheRow | None:
        record = _ENTRY.first(self._connection, {"k": key})
        return None if record is None else CacheRow(**dict(zip(_ENTRY_COLUMNS, record, strict=True)))

    def put_new(self, row: CacheRow) -> bool:
        """False, and nothing is changed, if the key has an entry."""
        values: dict[str, Any] = {name: getattr(row, name) for name in CacheRow.__dataclass_fields__}
        return insert_if_absent(self._connection, cache_outputs, values)

    def put(self, row: CacheRow) -> None:
        """Store or replace."""
        values: dict[str, Any] = {name: getattr(row, name) for name in CacheRow.__dataclass_fields__}
        upsert(self._connection, cache_outputs, values, ("key",))

    def delete(self, key: str) -> bool:
        return self._connection.execute(delete(cache_outputs).where(cache_outputs.c.key == key)).rowcount > 0

    def reservation(self, key: str) -> ReservationRow | None:
        record = _RESERVATION.first(self._connection, {"k": key})
        return None if record is None else ReservationRow(**dict(zip(_RESERVATION_COLUMNS, record, strict=True)))

    def reserve(
        self, key: str, owner: str, *, at: int, heartbeat_seconds: int = 0, expires_at: int | None = None
    ) -> ReservationRow:
        """Take or extend the reservation if it is free, expired or the owner's; returns whoever holds it."""
        mine = ReservationRow(key=key, owner=owner, heartbeat_seconds=heartbeat_seconds, expires_at=expires_at)
        values: dict[str, Any] = {
            "key": key,
            "owner": owner,
            "heartbeat_seconds": heartbeat_seconds,
            "expires_at": expires_at,
            "created_at": at,
            "updated_at": at,
        }
        if insert_if_absent(self._connection, cache_reservations, values):
            return mine
        held = self._lock_reservation(key)
        if held is not None and held.owner != owner and (held.expires_at is None or held.expires_at > at):
            return held
        upsert(self._connection, cache_reservations, values, ("key",), kept=("created_at",))
        return mine

    def _lock_reservation(self, key: str) -> ReservationRow | None:
        record = _RESERVATION_LOCKED.first(self._connection, {"k": key})
        return None if record is None else ReservationRow(**dict(zip(_RESERVATION_COLUMNS, record, strict=True)))

    def release(self, key: str, owner: str) -> bool:
        statement = delete(cache_reservations).where(
            cache_reservations.c.key == key, cache_reservations.c.owner == owner
        )
        return self._connection.execute(statement).rowcount > 0

    def release_all(self, owner: str) -> list[str]:
        """Give back all that an action holds; returns the keys."""
        keys = [key for (key,) in _HELD.all(self._connection, {"o": owner})]
        if keys:
            self._connection.execute(delete(cache_reservations).where(cache_reservations.c.owner == owner))
        return keys
