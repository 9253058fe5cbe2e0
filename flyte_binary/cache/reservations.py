"""Reservations: who computes the outputs of a key while others wait.

Owners outside this server keep theirs by heartbeats and lose it when they stop. One held by an action of ours lives
as long as the action is not terminal and has neither (`db/tables.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from flyteidl2.cacheservice import cacheservice_pb2 as v1
from google.protobuf.duration_pb2 import Duration

from flyte_binary.cache.requests import owner_as_sent
from flyte_binary.db.rows import ReservationRow
from flyte_binary.domain.timestamps import micros_to_proto

_KEY_PREFIX = "reservation:"
"""Before the key in answers, as in the reference backend."""

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    longest: timedelta = timedelta(seconds=10)
    """The longest time between two heartbeats that an owner may ask for, and the one for who asks for none."""

    grace_multiplier: int = 3
    """After how many missed heartbeats a reservation expires."""

    def granted(self, asked: Duration) -> timedelta:
        micros = asked.seconds * 1_000_000 + asked.nanos // 1000
        # As a number, because not every Duration is one that a timedelta can hold.
        return timedelta(microseconds=micros) if 0 < micros < self.longest // _MICROSECOND else self.longest

    def expiry(self, interval: timedelta, *, now: int) -> int:
        """Microseconds since the epoch."""
        return now + interval * self.grace_multiplier // _MICROSECOND


def reservation_from_row(row: ReservationRow, heartbeats: Heartbeats, *, now: int) -> v1.Reservation:
    """As callers see it. An action's looks as if its heartbeat had come in just now: clients read the expiry."""
    interval, expires_at = timedelta(seconds=row.heartbeat_seconds), row.expires_at
    if expires_at is None:
        interval = heartbeats.longest
        expires_at = heartbeats.expiry(interval, now=now)
    return v1.Reservation(
        key=_KEY_PREFIX + row.key,
        owner_id=owner_as_sent(row.owner),
        heartbeat_interval=Duration(seconds=interval // timedelta(seconds=1)),
        expires_at=micros_to_proto(expires_at),
    )
