"""Which database the configuration names, brought to this program's schema and opened."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from flyte_binary.config.model import Config, Postgres
from flyte_binary.db.database import Database
from flyte_binary.db.migrate import current_revision, refuse_newer, upgrade
from flyte_binary.db.sqlite import SqliteDatabase, make_engine
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.live.hub import Hub

if TYPE_CHECKING:
    from flyte_binary.db.postgres.connect import Address

_OTHERS = 3
"""Connections besides those of readers: two writers and the one that listens."""


def uses_postgres(config: Config) -> bool:
    postgres = config.runs.database.postgres
    return bool(postgres.url or postgres.host)


async def open_database(config: Config, hub: Hub, stack: AsyncExitStack) -> Database:
    """Migrated, and closed with `stack`. Raises `FlyteError` with a sentence."""
    if uses_postgres(config):
        return await _open_postgres(config, hub, stack)
    migrate_sqlite(config.sqlite_path)
    database = SqliteDatabase(config.sqlite_path, hub.publish)
    stack.push_async_callback(database.close)
    return database


def migrate(config: Config) -> tuple[str, str | None]:
    """Outside of a server: the database's name for people, and the revision it was at, None if it was empty."""
    if not uses_postgres(config):
        return str(config.sqlite_path), migrate_sqlite(config.sqlite_path)
    address = address_of(config.runs.database.postgres)
    return address.shown(), asyncio.run(migrate_postgres(address))


def schema_of(config: Config) -> tuple[str, str | None]:
    """What `migrate` would find, without making or changing anything. Raises as it does."""
    if uses_postgres(config):
        # As below.
        from flyte_binary.db.postgres.schema import revision_of  # noqa: PLC0415

        address = address_of(config.runs.database.postgres)
        shown, found = address.shown(), asyncio.run(revision_of(address))
    else:
        shown, found = str(config.sqlite_path), _sqlite_revision(config.sqlite_path)
    refuse_newer(found)
    return shown, found


def _sqlite_revision(path: Path) -> str | None:
    if not path.exists():
        return None
    engine = make_engine(path)
    try:
        with engine.connect() as connection:
            return current_revision(connection)
    finally:
        engine.dispose()


def migrate_sqlite(path: Path) -> str | None:
    """The revision that it was at."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = make_engine(path)
    try:
        return upgrade(engine)
    finally:
        engine.dispose()


async def migrate_postgres(address: Address) -> str | None:
    """The same. Makes the database if there is none of that name."""
    # Drivers and dialects that a laptop does not need.
    from flyte_binary.db.postgres.connect import ensure_database  # noqa: PLC0415
    from flyte_binary.db.postgres.schema import upgrade_database  # noqa: PLC0415

    await ensure_database(address)
    return await upgrade_database(address)


async def _open_postgres(config: Config, hub: Hub, stack: AsyncExitStack) -> Database:
    from flyte_binary.db.postgres.channel import PostgresChannel  # noqa: PLC0415  # as above
    from flyte_binary.db.postgres.database import PostgresDatabase  # noqa: PLC0415
    from flyte_binary.db.recent import RecentChanges  # noqa: PLC0415
    from flyte_binary.live.bridge import Bridge  # noqa: PLC0415

    address = address_of(config.runs.database.postgres)
    await migrate_postgres(address)
    bridge = Bridge(hub, PostgresChannel(address))
    readers = config.runs.database.postgres.max_open_connections - _OTHERS
    database = PostgresDatabase(address, bridge.publish, readers=readers)
    stack.push_async_callback(database.close)
    await bridge.start(RecentChanges(database))
    stack.push_async_callback(bridge.close)
    return database


def address_of(postgres: Postgres) -> Address:
    """Raises `InvalidArgument` for options that are none."""
    from flyte_binary.db.postgres.connect import Address  # noqa: PLC0415  # as above

    return Address(
        url=postgres.url or _url_of(postgres),
        password_path=postgres.password_path,
        password_command=postgres.password_command,
    )


def _url_of(postgres: Postgres) -> str:
    user = quote(postgres.username, safe="")
    if postgres.password:
        user += f":{quote(postgres.password, safe='')}"
    parameters: dict[str, str] = {}
    for option in postgres.options.split():
        name, equals, value = option.partition("=")
        if not equals:
            raise InvalidArgument(
                f"runs.database.postgres.options: {option!r} is no option; expected name=value separated by spaces"
            )
        parameters[name] = value
    hosts = ""
    if postgres.host.startswith("/"):
        parameters["host"] = postgres.host
        parameters["port"] = str(postgres.port)
    else:
        hosts = ",".join(f"{host.strip()}:{postgres.port}" for host in postgres.host.split(","))
    query = f"?{urlencode(parameters)}" if parameters else ""
    return f"postgresql://{user}@{hosts}/{quote(postgres.dbname, safe='')}{query}"
