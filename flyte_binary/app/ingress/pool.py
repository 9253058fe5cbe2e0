"""Connections to replicas that are kept, by address. Used on one event loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from flyte_binary.app.ingress.upstream import Connection, UpstreamGone

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 4.0
"""Less than the 5 s after which uvicorn closes a connection that it has kept."""

MAX_IDLE = 64
"""Connections to one replica that are kept."""

Address = tuple[str, int]


class Pool:
    def __init__(self) -> None:
        self.idle_seconds = IDLE_SECONDS
        self._idle: dict[Address, deque[Connection]] = {}
        """The one that was used last stands at the end, and is taken first."""

        self._sweep_timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def get(self, host: str, port: int, *, fresh: bool = False) -> Connection:
        """A connection without a request. Raises `UpstreamGone`."""
        idle = None if fresh else self._idle.get((host, port))
        oldest = time.monotonic() - self.idle_seconds
        while idle:
            connection = idle.pop()
            if connection.usable and connection.idle_since > oldest:
                return connection
            connection.close()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await asyncio.get_running_loop().create_connection(Connection, host, port)
        except (OSError, TimeoutError) as error:
            raise UpstreamGone(f"it takes no connection: {error}") from error
        return connection

    def give_back(self, host: str, port: int, connection: Connection) -> None:
        """After a complete answer; whatever cannot be used again is closed."""
        idle = self._idle.setdefault((host, port), deque())
        if self._closed or not connection.reusable or len(idle) >= MAX_IDLE:
            connection.close()
            return
        connection.rest(time.monotonic())
        idle.append(connection)
        if self._sweep_timer is None:
            self._sweep_later()

    def close_all(self) -> None:
        self._closed = True
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()

    @property
    def kept(self) -> int:
        return sum(map(len, self._idle.values()))

    def _sweep_later(self) -> None:
        self._sweep_timer = asyncio.get_running_loop().call_later(self.idle_seconds, self._sweep)

    def _sweep(self) -> None:
        """Replicas come and go, each with an address of its own, and not every one closes what is idle."""
        self._sweep_timer = None
        oldest = time.monotonic() - self.idle_seconds
        for address, idle in list(self._idle.items()):
            while idle and idle[0].idle_since <= oldest:
                idle.popleft().close()
            if not idle:
                del self._idle[address]
        if self._idle:
            self._sweep_later()
