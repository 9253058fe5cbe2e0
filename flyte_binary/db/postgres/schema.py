"""The migrations on PostgreSQL: the same as on SQLite, behind a lock that servers that start at once wait for."""

from __future__ import annotations

from flyte_binary.db.migrate import upgrade_on
from flyte_binary.db.postgres.connect import Address, make_engine


async def upgrade_database(address: Address) -> str | None:
    """Returns the revision it was at, None for an empty database. Raises as `db.migrate.upgrade` does."""
    engine = make_engine(address)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(upgrade_on)
    finally:
        await engine.dispose()
