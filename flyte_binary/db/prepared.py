"""Statements that are compiled once for each dialect and handed to the driver as they are.

SQLAlchemy's execution of a statement costs several times what SQLite itself needs for one row by its key (measured:
121 us against 18 us), and building one anew costs that again. The hot statements, all of one row or few, go this way;
whoever filters and lists uses SQLAlchemy as usual.

No types are converted on the way: both drivers take and return what the tables hold, but for SQLite's booleans, which
come back as numbers. Errors are the driver's own; `db/sqlite.py` takes them all for failed commits alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # column values have many types, and drivers' cursors no common one

from sqlalchemy import ColumnElement, Connection, literal_column
from sqlalchemy.sql.elements import CompilerElement
from sqlalchemy.util import await_only as await_

Parameters = Mapping[str, Any]  # any: parameter name -> column value
Record = Sequence[Any]  # any: column values in the order of the statement


@dataclass(frozen=True, slots=True)
class _Compiled:
    sql: str
    names: tuple[str, ...]
    constants: Parameters

    def bind(self, parameters: Parameters) -> tuple[Any, ...]:  # any: column values
        if self.constants:
            parameters = {**self.constants, **parameters}
        return tuple([parameters[name] for name in self.names])


class Prepared:
    """Made once, at import; parameters are the statement's `bindparam`s, or the columns of an INSERT."""

    def __init__(self, statement: CompilerElement, columns: Iterable[str] | None = None) -> None:
        """`columns` are those that an INSERT gives values for; by default all of the table."""
        self._statement = statement
        self._columns = None if columns is None else list(columns)
        self._compiled: dict[str, _Compiled] = {}

    def first(self, connection: Connection, parameters: Parameters) -> Record | None:
        driver = _asyncpg(connection)
        if driver is None:
            return self._run(connection, parameters).fetchone()
        compiled = self._for(connection)
        return await_(driver.fetchrow(compiled.sql, *compiled.bind(parameters)))

    def all(self, connection: Connection, parameters: Parameters) -> Sequence[Record]:
        driver = _asyncpg(connection)
        if driver is None:
            return self._run(connection, parameters).fetchall()
        compiled = self._for(connection)
        return await_(driver.fetch(compiled.sql, *compiled.bind(parameters)))

    def execute(self, connection: Connection, parameters: Parameters) -> int:
        """How many rows were changed."""
        driver = _asyncpg(connection)
        if driver is None:
            return self._run(connection, parameters).rowcount
        compiled = self._for(connection)
        # "UPDATE 1", "INSERT 0 1"
        return int(await_(driver.execute(compiled.sql, *compiled.bind(parameters))).rpartition(" ")[2])

    def execute_many(self, connection: Connection, parameters: Iterable[Parameters]) -> None:
        compiled = self._for(connection)
        bound = [compiled.bind(each) for each in parameters]
        driver = _asyncpg(connection)
        if driver is None:
            _cursor(connection).executemany(compiled.sql, bound)
        elif len(bound) == 1:
            await_(driver.execute(compiled.sql, *bound[0]))
        else:
            await_(driver.executemany(compiled.sql, bound))

    def _run(self, connection: Connection, parameters: Parameters) -> Any:  # any: a cursor of the driver's
        compiled = self._for(connection)
        cursor = _cursor(connection)
        cursor.execute(compiled.sql, compiled.bind(parameters))
        return cursor

    def _for(self, connection: Connection) -> _Compiled:
        name = connection.dialect.name
        found = self._compiled.get(name)
        if found is None:
            found = self._compiled[name] = self._compile(connection)
        return found

    def _compile(self, connection: Connection) -> _Compiled:
        # Two threads may both get here at first; they make the same.
        compiled: Any = self._statement.compile(  # any: the compiler's class depends on dialect and statement
            dialect=connection.dialect, column_keys=self._columns
        )
        names = tuple(compiled.positiontup)
        constants = {
            name: bind.effective_value for name, bind in compiled.binds.items() if name in names and not bind.required
        }
        return _Compiled(sql=compiled.string, names=names, constants=constants)


def _asyncpg(connection: Connection) -> Any:  # any: asyncpg has no types
    """The driver's connection, awaited without SQLAlchemy's cursor between; None on another database."""
    return connection.connection.driver_connection if connection.dialect.name == "postgresql" else None


def _cursor(connection: Connection) -> Any:  # any: a cursor of the driver's
    dbapi_connection = connection.connection.dbapi_connection
    assert dbapi_connection is not None
    return dbapi_connection.cursor()


def one_of(column: ColumnElement[int], values: Iterable[int]) -> ColumnElement[bool]:
    """`column IN (1, 2)` with the numbers in the statement, which parameters would keep from being compiled once."""
    return column.in_([literal_column(str(int(value))) for value in values])
