"""The migrations make the schema that the program's tables describe."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Engine, text

from flyte_binary.db.sqlite import make_engine
from flyte_binary.db.tables import metadata
from tests.db_fixtures import migrated


def statements(engine: Engine) -> dict[str, list[str]]:
    """What SQLite keeps of each table and index, as sorted parts, because the order of columns does not matter."""
    query = text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name != 'alembic_version'")
    with engine.connect() as connection:
        found = {name: str(sql) for name, sql in connection.execute(query)}
    return {
        name: sorted(part.strip(' ()\n\t"') for part in re.split(r",|\n", sql) if part.strip(" ()\n\t"))
        if sql.startswith("CREATE TABLE")
        else [" ".join(sql.split())]
        for name, sql in found.items()
    }


def test_the_migrations_make_what_the_tables_say(tmp_path: Path) -> None:
    described = make_engine(tmp_path / "described.db")
    with described.connect() as connection:
        metadata.create_all(connection)

    assert statements(make_engine(migrated(tmp_path / "migrated.db"))) == statements(described)
