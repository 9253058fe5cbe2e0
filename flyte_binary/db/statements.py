"""Helpers that every repository shares: conditions on ids, values of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from sqlalchemy import ColumnElement, Table, and_

from flyte_binary.domain.ids import ActionId, RunId

T = TypeVar("T")

IN_LIMIT = 500
"""Values in one IN list: far below every database's limit, and few distinct statements."""


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


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
