"""Statements that go to the driver past SQLAlchemy's execution."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, bindparam, create_engine, insert, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection

from flyte_binary.db import actions, attempts, cache, events, tasks
from flyte_binary.db.prepared import Prepared, one_of

things = Table(
    "things", MetaData(), Column("name", String, primary_key=True), Column("size", Integer, server_default="7")
)


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as made:
        things.metadata.create_all(made)
        yield made
    engine.dispose()


def test_parameters_reach_their_places_whatever_their_order(connection: Connection) -> None:
    Prepared(insert(things)).execute(connection, {"size": 3, "name": "a"})

    found = Prepared(select(things.c.size).where(things.c.size > bindparam("least"), things.c.name == bindparam("n")))

    assert found.first(connection, {"n": "a", "least": 2}) == (3,)
    assert found.first(connection, {"n": "a", "least": 3}) is None


def test_an_insert_of_some_columns_leaves_the_others_to_their_defaults(connection: Connection) -> None:
    Prepared(insert(things), ["name"]).execute(connection, {"name": "a"})

    assert Prepared(select(things.c.name, things.c.size)).all(connection, {}) == [("a", 7)]


def test_values_of_the_statement_itself_are_sent_along(connection: Connection) -> None:
    Prepared(insert(things)).execute_many(connection, [{"name": "a", "size": 1}, {"name": "b", "size": 2}])
    marked = Prepared(update(things).where(things.c.size >= 2).values(size=bindparam("to")))

    assert marked.execute(connection, {"to": 9}) == 1
    assert Prepared(select(things.c.size).order_by("name")).all(connection, {}) == [(1,), (9,)]


def test_numbers_of_a_list_stand_in_the_statement(connection: Connection) -> None:
    Prepared(insert(things)).execute_many(
        connection, [{"name": name, "size": len(name)} for name in ("a", "bb", "ccc")]
    )

    found = Prepared(select(things.c.name).where(one_of(things.c.size, (1, 3))).order_by("name"))

    assert found.all(connection, {}) == [("a",), ("ccc",)]


def test_every_prepared_statement_compiles_for_postgresql_too() -> None:
    dialect = postgresql.asyncpg.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy's constructors have no types
    connection = SimpleNamespace(dialect=dialect)
    modules = (actions, attempts, cache, events, tasks)
    prepared = [one for module in modules for one in vars(module).values() if isinstance(one, Prepared)]

    assert len(prepared) > 10
    for one in prepared:
        compiled = one._compile(connection)  # type: ignore[arg-type]  # only its dialect is looked at
        assert compiled.sql.count("$") == len(compiled.names)
