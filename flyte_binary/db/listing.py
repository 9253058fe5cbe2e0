"""Filters, orders and pages as SQL that answers alike on SQLite and PostgreSQL.

Text is compared bytewise; `LIKE` is not used, because it folds case on one database and not on the other and would
need its wildcards escaped. NULL sorts as the largest value, as it does on PostgreSQL.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple  # columns of one list have many types

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    exists,
    false,
    func,
    literal,
    not_,
    true,
    tuple_,
)

from flyte_binary.db.tables import run_labels
from flyte_binary.domain.filters import INT64_LIMIT, Condition, Op, Value
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


class FoundPage(NamedTuple):
    records: Sequence[RowMapping]
    last: tuple[SortValue, ...] | None
    """Sort values of the last record if more follow."""


def find_page(
    connection: Connection,
    statement: Select[*tuple[Any, ...]],  # whatever the caller selects
    page: Page,
    columns: Columns,
    fixed: Collection[str] = (),
) -> FoundPage:
    """The records of a page. `fixed` are columns that have one value in all rows of `statement`; they need no order.

    A page that begins behind a row is read in parts, each of which is one range of an index: first what equals that row
    in all but the last of the keys, at last what differs in the first.
    """
    keys = [_sort_key(columns[order.field.column]) for order in page.orders]
    ordered = [
        _Key(key, order.descending, position)
        for position, (key, order) in enumerate(zip(keys, page.orders, strict=True))
        if order.field.column not in fixed
    ]
    marked = [key.label(f"{_MARK}{position}") for position, key in enumerate(keys)]
    statement = statement.add_columns(*marked).order_by(
        *(key.column.desc() if key.descending else key.column.asc() for key in ordered)
    )
    records: list[RowMapping] = []
    for part in _parts(statement, ordered, page):
        records += connection.execute(part.limit(page.limit + 1 - len(records))).mappings().all()
        if len(records) > page.limit:
            break
    return _cut(records, page)


def _cut(records: Sequence[RowMapping], page: Page) -> FoundPage:
    if len(records) <= page.limit:
        return FoundPage(records, None)
    kept = records[: page.limit]
    return FoundPage(kept, tuple(kept[-1][f"{_MARK}{position}"] for position in range(len(page.orders))))


@dataclass(frozen=True, slots=True)
class _Key:
    column: ColumnElement[Any]  # the column's own type
    descending: bool
    position: int
    """Among the sort values of a row."""


def _parts(statement: Select[Any], keys: Sequence[_Key], page: Page) -> Iterator[Select[Any]]:  # any: the caller's
    if page.after is None:
        yield statement.offset(page.offset or None)
        return
    groups = [list(group) for _, group in groupby(keys, key=lambda key: key.descending)]
    for depth in range(len(groups), 0, -1):
        equal = [key.column == page.after[key.position] for group in groups[: depth - 1] for key in group]
        yield statement.where(*equal, _behind(groups[depth - 1], page.after))


def _behind(group: Sequence[_Key], after: Sequence[SortValue]) -> ColumnElement[bool]:
    """Keys of one direction are compared together, as an index over them is read."""
    if len(group) == 1:
        (key,) = group
        value = after[key.position]
        return key.column < value if key.descending else key.column > value
    own = tuple_(*(key.column for key in group))
    others = tuple_(*(literal(after[key.position], key.column.type) for key in group))
    return own < others if group[0].descending else own > others


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
