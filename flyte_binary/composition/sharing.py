"""Whether this server is alone on its database, and what it is called among others."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from flyte_binary.composition.databases import uses_postgres
from flyte_binary.config.model import Config
from flyte_binary.control.shards import EveryShard, FencedDatabase, LeasedShards, Shards
from flyte_binary.db.database import Database
from flyte_binary.db.leases import ServerRow
from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.live.hub import Hub

_PORT_FILE = "tasks.port"
_MACHINE = Path("/etc/machine-id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    shards: Shards
    node: str
    """Of the attempts that this server starts."""

    alone: bool
    fenced: Database
    """For what follows from decisions about shards."""


async def share(config: Config, database: Database, hub: Hub) -> Sharing:
    """Raises `FailedPrecondition` if tasks run as processes of another machine, which this one cannot see."""
    if not uses_postgres(config):
        return Sharing(shards=EveryShard(), node=str(config.data_dir), alone=True, fenced=database)
    node = f"{_machine()}:{config.data_dir}"
    others = await database.read(lambda tx: tx.leases.others(node))
    if others:
        raise FailedPrecondition(
            f"another flyte-binary works on this database at {others[0].node}. Tasks run as processes of the machine, "
            "so servers that share a database must run on one machine and share its data folder (--data-dir)"
        )
    server = ServerRow(id=f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}", node=node)
    return Sharing(
        shards=LeasedShards(database, hub, server), node=node, alone=False, fenced=FencedDatabase(database, server.id)
    )


def common_listener(folder: Path, host: str) -> socket.socket:
    """Bound to the one port that all servers of a data folder have for the tasks that they start: a task goes on with
    another server when the one that started it is gone. `folder` keeps the number of the port."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / _PORT_FILE).open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = file.read().strip()
        listener = _bound(host, int(known)) if known.isdigit() else None
        if listener is None:
            # None yet, or somebody else has it by now.
            listener = _bound(host, 0)
            if listener is None:
                raise FailedPrecondition(f"no port can be had on {host} for tasks to reach the servers")
            file.truncate(0)
            file.write(str(listener.getsockname()[1]))
    return listener


def _bound(host: str, port: int) -> socket.socket | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, as asyncio wants it for TCP_NODELAY.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host.strip("[]"), port))
    except OSError:
        listener.close()
        return None
    return listener


def _machine() -> str:
    try:
        return _MACHINE.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return socket.gethostname()
