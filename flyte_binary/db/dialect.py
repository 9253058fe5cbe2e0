"""All that differs between SQLite and PostgreSQL, in one place."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import cache
from typing import Any  # row values and DBAPI objects have no common type

from sqlalchemy import Connection, Select, Table
from sqlalchemy.dialects import sqlite

from flyte_binary.db.prepared import Prepared


def insert(connection: Connection, table: Table) -> sqlite.Insert:
    """An INSERT that knows `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return _insert(connection.dialect.name, table)


def _insert(dialect: str, table: Table) -> sqlite.Insert:
    if dialect == "sqlite":
        return sqlite.insert(table)
    # A tenth of a second of the start that a laptop does not need.
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415

    # The two classes have the same two methods and no common base.
    return postgresql.insert(table)  # pyright: ignore[reportReturnType]


def insert_if_absent(connection: Connection, table: Table, values: dict[str, Any]) -> bool:  # values: column -> value
    """True if the row was inserted, False if one with the same key stood there already."""
    return prepared_insert(connection, table, values).execute(connection, values) > 0


def prepared_insert(connection: Connection, table: Table, columns: Iterable[str]) -> Prepared:
    """Of rows with these columns; one whose key is there already is left alone."""
    return _insert_or_ignore(connection.dialect.name, table, tuple(columns))


@cache
def _insert_or_ignore(dialect: str, table: Table, columns: tuple[str, ...]) -> Prepared:
    return Prepared(_insert(dialect, table).on_conflict_do_nothing(), columns)


def upsert(
    connection: Connection, table: Table, values: dict[str, Any], key: tuple[str, ...], *, kept: tuple[str, ...] = ()
) -> None:
    """Insert, or replace the row of the same key but for the columns `kept`."""
    statement = _upsert(connection.dialect.name, table, tuple(values), key, kept)
    statement.execute(connection, values)


@cache
def _upsert(
    dialect: str, table: Table, columns: tuple[str, ...], key: tuple[str, ...], kept: tuple[str, ...]
) -> Prepared:
    statement = _insert(dialect, table)
    replaced = {name: statement.excluded[name] for name in columns if name not in {*key, *kept}}
    return Prepared(statement.on_conflict_do_update(index_elements=key, set_=replaced), columns)


def for_update(statement: Select[Any]) -> Select[Any]:  # Any: whatever columns the caller selected
    """Lock the rows until the commit. SQLite has one writer and ignores it."""
    return statement.with_for_update()


_SCHEMA_LOCK = 0x666C7974
"""Nobody else's number: four letters of the program's name."""


def for_share(statement: Select[Any]) -> Select[Any]:  # Any: as above
    """Keep others from changing the rows until the commit."""
    return statement.with_for_update(read=True)


def now_micros(connection: Connection) -> int:
    """The database's clock, in microseconds since the epoch."""
    if connection.dialect.name == "postgresql":
        statement = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        return connection.exec_driver_sql(statement).scalar_one()
    return time.time_ns() // 1000


@contextmanager
def exclusive(connection: Connection) -> Generator[None]:
    """One transaction that holds off every other that is begun this way, on a connection in autocommit mode.

    On SQLite these are all writers. The lock of PostgreSQL ends with the transaction, so that it also works through a
    pooler.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")


def cannot_work(error: BaseException) -> bool:
    """Whether the database is out of order for now (no room, a broken disk, locked by another process), which is
    nobody's mistake and may pass; `error` is the driver's own or SQLAlchemy's around it."""
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", None)
    return isinstance(cause, sqlite3.Error) and code is not None and code & 0xFF in _OUT_OF_ORDER


_OUT_OF_ORDER = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
    }
)

SQLITE_PRAGMAS = (
    # Readers never block the writer nor it them.
    "PRAGMA journal_mode=WAL",
    # Every acknowledged commit is on the disk: with NORMAL a power cut may lose the last ones.
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    # Another process (backup, migrate) may hold the lock for a moment.
    "PRAGMA busy_timeout=5000",
    "PRAGMA temp_store=MEMORY",
    # The WAL is copied back at 1,000 pages and cut to at most 64 MiB.
    "PRAGMA journal_size_limit=67108864",
    "PRAGMA cache_size=-8192",
)
