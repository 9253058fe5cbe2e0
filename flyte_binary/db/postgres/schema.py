"""The migrations on PostgreSQL: the same as on SQLite, behind a lock that servers that start at once wait for."""

from __future__ import annotations

from flyte_binary.db.migrate import current_revision, upgrade_on
from flyte_binary.db.postgres.connect import Address, database_exists, make_engine


async def upgrade_database(address: Address) -> str | None:
    """Returns the revision it was at, None for an empty database. Raises as `db.migrate.upgrade` does."""
    engine = make_engine(address)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(upgrade_on)
    finally:
        await engine.dispose()


async def revision_of(address: Address) -> str | None:
    """The revision it is at, None for an empty database or none at all; nothing is changed.

    Raises as `ensure_database` does for a server that cannot be reached.
    """
    if not await database_exists(address):
        return None
    engine = make_engine(address)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(current_revision)
    finally:
        await engine.dispose()
