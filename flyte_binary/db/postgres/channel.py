"""LISTEN and NOTIFY on a connection of their own, made again when it is lost.

Notifications go out after the commit and never within a transaction: there they would serialise all commits of the
database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any  # asyncpg has no type annotations

import structlog

from flyte_binary.db.postgres.connect import Address, connect
from flyte_binary.domain.errors import FailedPrecondition, Unavailable

log = structlog.get_logger(__name__)

CHANNEL = "flyte_changes"
PAYLOAD_LIMIT_BYTES = 7900
"""PostgreSQL takes less than 8,000."""

_PROBE = "probe"
_PROBE_SECONDS = 5.0
_PAUSE_SECONDS = (0.1, 5.0)


class PostgresChannel:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Any = None  # Any: as above
        self._lost = asyncio.Event()
        self._heard: Callable[[str], None] = lambda _payload: None
        self._probed = asyncio.Event()

    async def open(self, heard: Callable[[str], None]) -> None:
        """`heard` gets the payloads of all who send, the own ones included.

        Raises `FailedPrecondition` if notifications do not come through, as behind a pooler in transaction mode.
        """
        self._heard = heard
        await self._connect()
        await self._probe()

    async def send(self, payloads: Iterable[str]) -> None:
        """Raises `Unavailable`; what has been sent by then cannot be told."""
        connection = self._connection
        if connection is None or connection.is_closed():
            raise Unavailable("the connection for notifications is lost")
        try:
            await connection.executemany(f"SELECT pg_notify('{CHANNEL}', $1)", [(payload,) for payload in payloads])
        except Exception as error:
            raise Unavailable(f"notifications cannot be sent: {error}") from error

    async def reconnect_when_lost(self) -> None:
        """Returns when the connection has been lost and there is a new one: what was said meanwhile is lost."""
        await self._lost.wait()
        pause = _PAUSE_SECONDS[0]
        while True:
            try:
                await self._connect()
                return
            except Exception as error:  # noqa: BLE001  # whatever keeps the database away
                log.warning("no notifications from the database", reason=str(error) or type(error).__name__)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _PAUSE_SECONDS[1])

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                await connection.close(timeout=1)

    async def _connect(self) -> None:
        connection = await connect(self._address, application="flyte-binary notifications")
        self._lost.clear()
        connection.add_termination_listener(self._terminated)
        await connection.add_listener(CHANNEL, self._notified)
        self._connection = connection

    def _terminated(self, connection: Any) -> None:  # Any: as above
        if connection is self._connection:
            self._connection = None
            self._lost.set()

    def _notified(self, _connection: object, _pid: int, _channel: str, payload: str) -> None:
        if payload == _PROBE:
            self._probed.set()
        else:
            self._heard(payload)

    async def _probe(self) -> None:
        # From another connection: a pooler would give the listening one its own notification right away.
        other = await connect(self._address)
        try:
            await other.execute(f"SELECT pg_notify('{CHANNEL}', '{_PROBE}')")
            async with asyncio.timeout(_PROBE_SECONDS):
                await self._probed.wait()
        except TimeoutError:
            raise FailedPrecondition(
                f"PostgreSQL at {self._address.shown()} does not deliver notifications, so servers would not hear of "
                "each other's changes: it is probably reached through a pooler in transaction mode. Point "
                "runs.database.postgres at the database itself, or at a pooler in session mode"
            ) from None
        finally:
            await other.close()
