"""One process of an app, and what this server knows of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import dataclass
from enum import Enum

from flyte_binary.app.local.processes import ReplicaId
from flyte_binary.db.app_replicas import ReplicaRow

HOST = "127.0.0.1"

_CONNECT_SECONDS = 1.0


class ReplicaPhase(Enum):
    STARTING = "starting"
    READY = "ready"
    """It listens and gets requests."""

    ENDING = "ending"
    """It gets no more requests, and ends when it has none."""

    ENDED = "ended"
    """Its log is all that is left."""


@dataclass(slots=True, eq=False)
class Replica:
    row: ReplicaRow
    phase: ReplicaPhase
    port: int
    """Where it listens; the one it was told to, or one of its own choice."""

    in_flight: int = 0
    began: float = 0.0
    """On the monotonic clock: since when it is in its phase."""

    stopping: bool = False
    """It was told to end."""

    @property
    def id(self) -> ReplicaId:
        return ReplicaId(self.row.app, self.row.number)

    @property
    def is_pinned(self) -> bool:
        """It listens on a port of its own choice, which a second process cannot have."""
        return self.port != self.row.port

    @property
    def lives(self) -> bool:
        return self.phase is not ReplicaPhase.ENDED

    @property
    def serves(self) -> bool:
        return self.phase is ReplicaPhase.READY

    def turn(self, phase: ReplicaPhase, now: float) -> None:
        self.phase = phase
        self.began = now


def free_port() -> int:
    """One on which nobody listens now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


async def accepts(port: int) -> bool:
    """Whether somebody takes connections there."""
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(HOST, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
