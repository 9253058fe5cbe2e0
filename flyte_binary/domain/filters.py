"""Filters and orders of list requests, checked and typed: what the database layer makes SQL of.

Values arrive as text. Each field says what its values are, so that a wrong one is refused here with the field's name
and not by one database and accepted by the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from flyteidl2.common import list_pb2

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.timestamps import to_micros

Value = str | int | bool

LABEL_PREFIX = "labels."

INT64_LIMIT = 2**63 - 1


class Op(Enum):
    """Numbers and names are those of `common.Filter.Function`."""

    EQUAL = 0
    NOT_EQUAL = 1
    GREATER_THAN = 2
    GREATER_THAN_OR_EQUAL = 3
    LESS_THAN = 4
    LESS_THAN_OR_EQUAL = 5
    CONTAINS = 6
    VALUE_IN = 7
    VALUE_NOT_IN = 9
    ENDS_WITH = 12
    NOT_ENDS_WITH = 13
    CONTAINS_CASE_INSENSITIVE = 14
    EXISTS = 15
    NOT_EXISTS = 16


TEXT_OPS = frozenset({Op.CONTAINS, Op.ENDS_WITH, Op.NOT_ENDS_WITH, Op.CONTAINS_CASE_INSENSITIVE})
PRESENCE_OPS = frozenset({Op.EXISTS, Op.NOT_EXISTS})
SET_OPS = frozenset({Op.VALUE_IN, Op.VALUE_NOT_IN})


class Kind(Enum):
    TEXT = "text"
    NUMBER = "a whole number"
    TIME = "a time in ISO 8601"
    BOOL = "true or false"


@dataclass(frozen=True, slots=True)
class Field:
    """A field that requests may name."""

    name: str
    """As requests call it."""

    column: str
    """What the database layer calls it."""

    kind: Kind = Kind.TEXT
    names: Callable[[str], int | None] | None = None
    """For enums: the number behind a name, None for a name that it does not have."""

    label: str = ""
    """The key of a label, for `labels.<key>`."""


@dataclass(frozen=True, slots=True)
class Condition:
    field: Field
    op: Op
    values: tuple[Value, ...] = ()
    """One for most, at least one for `VALUE_IN` and `VALUE_NOT_IN`, none for `EXISTS` and `NOT_EXISTS`."""


@dataclass(frozen=True, slots=True)
class Order:
    field: Field
    descending: bool = False


Fields = Mapping[str, Field]


def fields(*known: Field) -> Fields:
    return {field.name: field for field in known}


def conditions_from_proto(
    filters: Iterable[list_pb2.Filter], known: Fields, *, labels: bool = False
) -> list[Condition]:
    """Raises `InvalidArgument` naming the field. `labels` allows `labels.<key>`, a property of runs."""
    return [_condition(message, known, labels=labels) for message in filters]


def orders_from_proto(
    request: list_pb2.ListRequest, known: Fields, *, default: Sequence[Order], ties: Sequence[Field]
) -> list[Order]:
    """`sort_by_fields`, else the deprecated `sort_by`, else `default`; `ties` are appended to make the order total."""
    asked = list(request.sort_by_fields)
    if not asked and request.sort_by.key:
        asked = [request.sort_by]
    orders = [
        Order(_known(sort.key, known, "sort"), sort.direction != list_pb2.Sort.ASCENDING) for sort in asked
    ] or list(default)
    named = {order.field.column for order in orders}
    return orders + [Order(field) for field in ties if field.column not in named]


def value_of(field: Field, text: str) -> Value:
    """Raises `InvalidArgument` naming the field and what it takes."""
    match field.kind:
        case Kind.TEXT:
            if "\0" in text:
                raise InvalidArgument(f"filter on {field.name}: the value must not contain the NUL character")
            return text
        case Kind.NUMBER:
            found = _number(field, text)
        case Kind.TIME:
            found = _micros(text)
        case Kind.BOOL:
            found = {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if found is None:
        raise InvalidArgument(f"filter on {field.name}: {text!r} is not {field.kind.value}")
    return found


def _condition(message: list_pb2.Filter, known: Fields, *, labels: bool) -> Condition:
    field = _label(message.field) if labels else None
    field = field or _known(message.field, known, "filter")
    try:
        op = Op(message.function)
    except ValueError:
        raise InvalidArgument(f"filter on {field.name}: function {message.function} is unknown") from None
    if op in TEXT_OPS and field.kind is not Kind.TEXT:
        raise InvalidArgument(f"filter on {field.name}: {op.name} works on texts only, not on {field.kind.value}")
    if op in PRESENCE_OPS:
        return Condition(field, op)
    texts = _texts(message, field, op)
    if not texts:
        raise InvalidArgument(f"filter on {field.name}: {op.name} needs a value")
    if len(texts) > 1 and op not in SET_OPS:
        raise InvalidArgument(f"filter on {field.name}: {op.name} takes one value, not {len(texts)}; use VALUE_IN")
    return Condition(field, op, tuple(value_of(field, text) for text in texts))


def _texts(message: list_pb2.Filter, field: Field, op: Op) -> list[str]:
    texts = list(message.values)
    if op is Op.EQUAL and field.kind is Kind.NUMBER and len(texts) > 1 and all(len(text) == 1 for text in texts):
        # SDK 2.12 passes one phase as a text where a list belongs, so that "10" arrives as "1", "0".
        return ["".join(texts)]
    return texts


def _label(name: str) -> Field | None:
    key = name.removeprefix(LABEL_PREFIX)
    if key == name:
        return None
    if not key or "\0" in key:
        raise InvalidArgument(f"filter on {name!r}: a label's key is missing or contains the NUL character")
    return Field(name, "label", label=key)


def _known(name: str, known: Fields, use: str) -> Field:
    field = known.get(name)
    if field is None:
        raise InvalidArgument(f"invalid {use} field {name!r}; known are: {', '.join(known)}")
    return field


def _number(field: Field, text: str) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return field.names(text) if field.names else None
    return number if abs(number) <= INT64_LIMIT else None


def _micros(text: str) -> int | None:
    """A time without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return to_micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
