"""From a replica's launch to the moment it listens."""

from __future__ import annotations

import asyncio
import time

from flyte_binary.app.local.processes import Processes, ProcessPhase, ReplicaSpec
from flyte_binary.app.local.replica import Replica, accepts
from flyte_binary.domain.errors import FlyteError

_FIRST_LOOK_SECONDS = 0.01
_LONGEST_LOOK_SECONDS = 0.1
_OWN_PORT_AFTER_SECONDS = 1.0
"""By then most programs that take the port given listen on it; before, we do not look for another."""

_OWN_PORT_EVERY_SECONDS = 0.5
_DEAD = (ProcessPhase.ABSENT, ProcessPhase.EXITED)


class NotReady(Exception):
    """A sentence on why the replica does not serve; it may still run."""


async def launch(processes: Processes, spec: ReplicaSpec) -> None:
    try:
        await processes.launch(spec)
    except FlyteError as error:
        raise NotReady(error.message) from error


async def until_it_listens(
    processes: Processes, replica: Replica, *, declared_port: int, timeout_seconds: float
) -> None:
    """Returns when it takes connections, with its `port` set to where. Raises `NotReady`; if that is because the
    process ended, the message is empty."""
    began = time.monotonic()
    look_again, look_for_port = _FIRST_LOOK_SECONDS, began + _OWN_PORT_AFTER_SECONDS
    while not await accepts(replica.row.port):
        now = time.monotonic()
        state = await processes.observe(replica.id, replica.row.nonce)
        if state.phase in _DEAD:
            raise NotReady("")
        if now >= look_for_port:
            look_for_port = now + _OWN_PORT_EVERY_SECONDS
            if declared_port in await processes.listens(replica.id):
                replica.port = declared_port
                return
        if now - began > timeout_seconds:
            raise NotReady(
                f"it has not listened on port {replica.row.port} (PORT) or {declared_port} for {timeout_seconds:g} s"
            )
        await asyncio.sleep(look_again)
        look_again = min(look_again * 1.5, _LONGEST_LOOK_SECONDS)
