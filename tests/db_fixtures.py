"""A migrated database for each test, of the kind that the test runs on.

On SQLite it costs a copy of a file, on PostgreSQL a copy of a database.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from flyte_binary.db.database import Database, Publish
from flyte_binary.db.migrate import upgrade
from flyte_binary.db.sqlite import SqliteDatabase, make_engine

SQLITE, POSTGRES = "sqlite", "postgres"
KINDS = (SQLITE, POSTGRES)


class Storage:
    """What outlives a `Database`: a file, or a database of a PostgreSQL server. Made empty but for the schema."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self._path = folder / "flyte.db"
        self.url = ""
        if kind == SQLITE:
            migrated(self._path)
            return
        # Starting PostgreSQL takes a second; tests of SQLite alone do without.
        from tests.postgres_server import new_database  # noqa: PLC0415

        self.url = new_database()

    def open(self, publish: Publish) -> Database:
        """To be called on the event loop, and may be called again: several servers share what is stored."""
        if self.kind == SQLITE:
            return SqliteDatabase(self._path, publish)
        from flyte_binary.db.postgres.connect import Address  # noqa: PLC0415  # as above
        from flyte_binary.db.postgres.database import PostgresDatabase  # noqa: PLC0415

        return PostgresDatabase(Address(url=self.url), publish, readers=4)


def migrated(path: Path) -> Path:
    """Make the SQLite file at `path`, empty but for the schema."""
    path.write_bytes(_template())
    return path


@functools.cache
def _template() -> bytes:
    """The migrations run once a test process; they take longer than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        engine = make_engine(path)
        upgrade(engine)
        engine.dispose()
        return path.read_bytes()
