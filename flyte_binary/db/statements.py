"""Helpers that every repository shares: conditions on ids, values of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Table, and_, bindparam

from flyte_binary.domain.ids import ActionId, RunId

T = TypeVar("T")

IN_LIMIT = 500
"""Values in one IN list: far below every database's limit, and few distinct statements."""


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


def parameters_of(action: ActionId) -> dict[str, Any]:  # any: what else a statement takes may be added
    """For statements made with `is_action`."""
    return {"p": action.project, "d": action.domain, "r": action.run, "n": action.name}


def is_run(table: Table) -> ColumnElement[bool]:
    """`of_run` for a statement that is made once; its parameters are `p`, `d` and `r`."""
    columns = table.c
    return and_(columns.project == bindparam("p"), columns.domain == bindparam("d"), columns.run == bindparam("r"))


def is_action(table: Table) -> ColumnElement[bool]:
    """`of_action` for a statement that is made once; `parameters_of` has its parameters."""
    return and_(is_run(table), table.c.name == bindparam("n"))


def of_run(table: Table, run: RunId) -> ColumnElement[bool]:
    columns = table.c
    return and_(columns.project == run.project, columns.domain == run.domain, columns.run == run.name)


def of_action(table: Table, action: ActionId) -> ColumnElement[bool]:
    columns = table.c
    return and_(
        columns.project == action.project,
        columns.domain == action.domain,
        columns.run == action.run,
        columns.name == action.name,
    )
