"""What went wrong with PostgreSQL, told by its SQLSTATE: try again, wait for it, or somebody's mistake."""

from __future__ import annotations

import asyncpg
from sqlalchemy.exc import DBAPIError, TimeoutError

_AGAIN = frozenset({"40001", "40P01"})
"""Serialization failure, deadlock: nobody's mistake, and another try may well succeed."""

_LATER = ("08", "53", "57P", "58", "XX", "25006")
"""Connection lost, no resources, being shut down, I/O error, internal error, a standby: out of order for now."""


def sqlstate(error: BaseException) -> str:
    """Empty if the error is not the database's own."""
    cause: BaseException = error
    if isinstance(cause, DBAPIError) and cause.orig is not None:
        cause = cause.orig
    for candidate in (cause, cause.__cause__):
        state = getattr(candidate, "sqlstate", None)
        if isinstance(state, str):
            return state
    return ""


def try_again(error: BaseException) -> bool:
    return sqlstate(error) in _AGAIN


def lost_connection(error: BaseException) -> bool:
    """Whether the connection is of no use any more, or never came about; or the database cannot work at present."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    for candidate in (error, cause, cause.__cause__):
        if isinstance(candidate, (OSError, EOFError, TimeoutError, asyncpg.InterfaceError)):
            return True
        if isinstance(candidate, asyncpg.InternalClientError):
            return True
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    return sqlstate(error).startswith(_LATER)


def first_line(error: BaseException) -> str:
    """For logs; SQLAlchemy's errors go on with statements and links."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return (str(cause).splitlines() or [""])[0] or type(cause).__name__
