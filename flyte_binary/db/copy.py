"""A copy of a live SQLite database, as it is at one moment."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from flyte_binary.db.migrate import HEAD
from flyte_binary.domain.errors import FailedPrecondition, Unavailable


def copy_database(source: Path, target: Path) -> None:
    """`target` is made anew. Readers and the writer of `source` go on meanwhile. Raises `Unavailable`."""
    try:
        with (
            closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as live,
            closing(sqlite3.connect(target)) as copy,
        ):
            # In one step: what is copied in several is begun again whenever the server writes.
            live.backup(copy)
    except sqlite3.Error as error:
        raise Unavailable(f"the database {source} cannot be copied: {error}") from error


def check_copy(path: Path) -> str:
    """The schema revision of a copy. Raises `FailedPrecondition` if it is damaged or none of ours."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as copy:
            (verdict,) = copy.execute("PRAGMA quick_check").fetchone()
            (revision,) = copy.execute("SELECT version_num FROM alembic_version").fetchone()
    except (sqlite3.Error, TypeError) as error:
        raise FailedPrecondition(f"{path} is no database of flyte-binary: {error}") from error
    if verdict != "ok":
        raise FailedPrecondition(f"{path} is damaged: {verdict}")
    if revision > HEAD:
        raise FailedPrecondition(
            f"{path} is at schema revision {revision}, newer than this program's {HEAD}: use the newer flyte-binary"
        )
    return revision
