"""Bring the schema up to date; a database that is already there costs one query and no import.

Migrations are Alembic's, in `db/migrations/versions`. A database that is newer than this program is
refused: an older server would write rows that the newer one does not understand.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from flyte_binary.db.dialect import exclusive
from flyte_binary.domain.errors import FailedPrecondition

HEAD = "0002"
"""The revision that this program works with; a test compares it with the migrations' own head."""

_SCRIPTS = Path(__file__).parent / "migrations"


def current_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def upgrade(engine: Engine) -> str | None:
    """Migrate to `HEAD`; returns the revision it was at, None for an empty database.

    Raises `FailedPrecondition` if the database is newer than this program.
    """
    with engine.connect() as connection:
        return upgrade_on(connection)


def upgrade_on(connection: Connection) -> str | None:
    """The same on a connection in autocommit mode."""
    found = current_revision(connection)
    if found == HEAD:
        return found
    # Whoever comes second waits here and finds the work done. One transaction: a crash leaves the old schema.
    with exclusive(connection):
        found = current_revision(connection)
        if found == HEAD:
            return found
        refuse_newer(found)
        _run_alembic(connection)
    return found


def refuse_newer(revision: str | None) -> None:
    """Raises `FailedPrecondition` for a revision that this program does not know; None is an empty database."""
    if revision is not None and not _known(revision):
        raise FailedPrecondition(
            f"the database is at schema revision {revision}, newer than this program's {HEAD}: "
            "start the newer flyte-binary, or restore the backup that was made before it"
        )


def _known(revision: str) -> bool:
    return any(path.name.startswith(f"{revision}_") for path in (_SCRIPTS / "versions").glob("*.py"))


def _run_alembic(connection: Connection) -> None:
    # Alembic takes a third of a second to import, and is needed only when there is something to do.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)
