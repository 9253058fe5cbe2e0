"""Whether this server is alone on its database, and what it is called among others."""

from __future__ import annotations

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

_MACHINE = Path("/etc/machine-id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    shards: Shards
    node: str
    """Of the attempts that this server starts."""

    fenced: Database
    """For what follows from decisions about shards."""


async def share(config: Config, database: Database, hub: Hub) -> Sharing:
    """Raises `FailedPrecondition` if tasks run as processes of another machine, which this one cannot see."""
    if not uses_postgres(config):
        return Sharing(shards=EveryShard(), node=str(config.data_dir), fenced=database)
    node = f"{_machine()}:{config.data_dir}"
    others = await database.read(lambda tx: tx.leases.others(node))
    if others:
        raise FailedPrecondition(
            f"another flyte-binary works on this database at {others[0].node}. Tasks run as processes of the machine, "
            "so servers that share a database must run on one machine and share its data folder (--data-dir)"
        )
    server = ServerRow(id=f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}", node=node)
    return Sharing(shards=LeasedShards(database, hub, server), node=node, fenced=FencedDatabase(database, server.id))


def _machine() -> str:
    try:
        return _MACHINE.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return socket.gethostname()
