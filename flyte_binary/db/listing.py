"""Filters, orders and pages as SQL that answers alike on SQLite and PostgreSQL.

Text is compared bytewise; `LIKE` is not used, because it folds case on one database and not on the other and would
need its wildcards escaped. NULL sorts as the largest value, as it does on PostgreSQL.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any  # columns of one list have many types

from sqlalchemy import ColumnElement, RowMapping, Select, and_, exists, false, func, literal, not_, or_, true

from flyte_binary.db.tables import run_labels
from flyte_binary.domain.filters import INT64_LIMIT, Condition, Op, Order, Value
from flyte_binary.domain.pages import Page, SortValue

_MARK = "sort_value_"
"""Prefix of the columns in which a page brings the values that it was sorted by."""

_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True, slots=True)
class Listed:
    """A column that requests may filter and sort by."""

    column: ColumnElement[Any]  # the column's own type
    nullable: bool = False
    """Sorts behind all values; otherwise the column is never NULL."""

    folded: ColumnElement[str] | None = None
    """The stored case-folded form, where there is one, for searches without case."""


Columns = Mapping[str, Listed]


def paged(
    statement: Select[Any],  # whatever the caller selects
    page: Page,
    columns: Columns,
) -> Select[Any]:  # the same
    """The statement for the rows of a page and one more, by which `cut` knows that there is another page."""
    keys = [_sort_key(columns[order.field.column]) for order in page.orders]
    if page.after is not None:
        statement = statement.where(_behind(keys, page.orders, page.after))
    by = [key.desc() if order.descending else key.asc() for key, order in zip(keys, page.orders, strict=True)]
    marked = [key.label(f"{_MARK}{position}") for position, key in enumerate(keys)]
    return statement.add_columns(*marked).order_by(*by).limit(page.limit + 1).offset(page.offset or None)


def cut(records: Sequence[RowMapping], page: Page) -> tuple[Sequence[RowMapping], tuple[SortValue, ...] | None]:
    """The records of the page, and the sort values of the last of them if more follow."""
    if len(records) <= page.limit:
        return records, None
    kept = records[: page.limit]
    return kept, tuple(kept[-1][f"{_MARK}{position}"] for position in range(len(page.orders)))


def where(
    conditions: Iterable[Condition], columns: Columns, run: Sequence[ColumnElement[Any]] = ()
) -> ColumnElement[bool]:
    """All of the conditions. `run` are the columns that identify the run of a row, for conditions on labels."""
    return and_(true(), *(_condition(condition, columns, run) for condition in conditions))


def _condition(condition: Condition, columns: Columns, run: Sequence[ColumnElement[Any]]) -> ColumnElement[bool]:
    if condition.field.label:
        return _label(condition, run)
    listed = columns[condition.field.column]
    if condition.op in (Op.EXISTS, Op.NOT_EXISTS):
        present = _present(listed.column)
        return present if condition.op is Op.EXISTS else not_(present)
    return _compared(condition.op, listed, condition.values)


def _label(condition: Condition, run: Sequence[ColumnElement[Any]]) -> ColumnElement[bool]:
    """A run without the label meets none of the conditions but `NOT_EXISTS`."""
    mine = zip((run_labels.c.project, run_labels.c.domain, run_labels.c.run), run, strict=True)
    of_run = and_(run_labels.c.key == condition.field.label, *(label == own for label, own in mine))
    if condition.op is Op.NOT_EXISTS:
        return ~exists().where(of_run)
    if condition.op is Op.EXISTS:
        return exists().where(of_run)
    return exists().where(of_run, _compared(condition.op, Listed(run_labels.c.value), condition.values))


def _present(column: ColumnElement[Any]) -> ColumnElement[bool]:
    """Texts that are not set are stored empty."""
    if column.type.python_type is str:
        return and_(column.is_not(None), column != "")
    return column.is_not(None)


def _compared(op: Op, listed: Listed, values: Sequence[Value]) -> ColumnElement[bool]:
    column = listed.column
    match op:
        case Op.VALUE_IN:
            return column.in_(values)
        case Op.VALUE_NOT_IN:
            return column.not_in(values)
        case Op.EQUAL:
            return column == values[0]
        case Op.NOT_EQUAL:
            return column != values[0]
        case Op.GREATER_THAN:
            return column > values[0]
        case Op.GREATER_THAN_OR_EQUAL:
            return column >= values[0]
        case Op.LESS_THAN:
            return column < values[0]
        case Op.LESS_THAN_OR_EQUAL:
            return column <= values[0]
        case _:
            return _matched(op, listed, str(values[0]))


def _matched(op: Op, listed: Listed, text: str) -> ColumnElement[bool]:
    column = listed.column
    match op:
        case Op.CONTAINS:
            return _contains(column, text)
        case Op.CONTAINS_CASE_INSENSITIVE if listed.folded is not None:
            return _contains(listed.folded, text.casefold())
        case Op.CONTAINS_CASE_INSENSITIVE:
            # Both databases fold ASCII letters only (PostgreSQL because of the "C" collation).
            return _contains(func.lower(column), text.translate(_ASCII_LOWER))
        case Op.ENDS_WITH:
            return _ends_with(column, text)
        case Op.NOT_ENDS_WITH:
            return not_(_ends_with(column, text))
        case _:
            return false()


def _contains(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """`replace` is there on both databases, finds bytewise and knows no wildcards."""
    if not text:
        return column.is_not(None)
    return func.replace(column, literal(text), "") != column


def _ends_with(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    start = func.length(column) - len(text) + 1
    return and_(start >= 1, func.substr(column, start) == text)


def _sort_key(listed: Listed) -> ColumnElement[Any]:
    if not listed.nullable:
        return listed.column
    return func.coalesce(listed.column, "" if listed.column.type.python_type is str else INT64_LIMIT)


def _behind(
    keys: Sequence[ColumnElement[Any]], orders: Sequence[Order], after: Sequence[SortValue]
) -> ColumnElement[bool]:
    """Rows that come later than `after` in the order.

    The bound on the first key says nothing new, but lets the database begin in the middle of an index.
    """
    alternatives: list[ColumnElement[bool]] = []
    equal: list[ColumnElement[bool]] = []
    for key, order, value in zip(keys, orders, after, strict=True):
        later = key < value if order.descending else key > value
        alternatives.append(and_(*equal, later))
        equal.append(key == value)
    bound = keys[0] <= after[0] if orders[0].descending else keys[0] >= after[0]
    return and_(bound, or_(*alternatives))
