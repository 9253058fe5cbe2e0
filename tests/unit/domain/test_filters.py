"""Filters, orders and page tokens of list requests."""

from __future__ import annotations

import pytest
from flyteidl2.common import list_pb2
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.filter_text import conditions_from_text
from flyte_binary.domain.filters import (
    Condition,
    Field,
    Kind,
    Op,
    Order,
    conditions_from_proto,
    fields,
    orders_from_proto,
)
from flyte_binary.domain.pages import page_from_proto, page_from_token, token_after

NAME = Field("name", "name")
PHASE = Field("phase", "phase", Kind.NUMBER, {"FAILED": 6}.get)
CREATED = Field("created_at", "created_at", Kind.TIME)
DONE = Field("done", "done", Kind.BOOL)
KNOWN = fields(NAME, PHASE, CREATED, DONE)


def filtered(field: str, function: str, *values: str) -> Condition:
    message = list_pb2.Filter(field=field, function=list_pb2.Filter.Function.Value(function), values=values)
    (condition,) = conditions_from_proto([message], KNOWN, labels=True)
    return condition


@pytest.mark.parametrize(
    ("field", "function", "values", "expected"),
    [
        ("name", "EQUAL", ("x",), ("x",)),
        ("phase", "EQUAL", ("6",), (6,)),
        ("phase", "VALUE_IN", ("6",), (6,)),
        ("phase", "VALUE_NOT_IN", ("6", "FAILED"), (6, 6)),
        ("created_at", "GREATER_THAN", ("1970-01-01T00:00:01Z",), (1_000_000,)),
        ("created_at", "LESS_THAN", ("1970-01-01T01:00:00+01:00",), (0,)),
        ("created_at", "LESS_THAN", ("1970-01-02",), (86_400_000_000,)),
        ("done", "EQUAL", ("true",), (True,)),
        ("name", "EXISTS", (), ()),
        ("name", "NOT_EXISTS", ("ignored",), ()),
    ],
)
def test_values_are_what_their_field_holds(
    field: str, function: str, values: tuple[str, ...], expected: tuple[object, ...]
) -> None:
    condition = filtered(field, function, *values)
    assert (condition.field, condition.op, condition.values) == (KNOWN[field], Op[function], expected)


def test_one_phase_that_the_sdk_sends_letter_by_letter_is_one_number() -> None:
    assert filtered("phase", "EQUAL", "1", "0").values == (10,)


def test_a_label_is_a_field_of_its_own() -> None:
    condition = filtered("labels.team.sub", "EQUAL", "ml")
    assert (condition.field.label, condition.values) == ("team.sub", ("ml",))


@pytest.mark.parametrize(
    ("field", "function", "values"),
    [
        ("nosuch", "EQUAL", ("x",)),
        ("name", "EQUAL", ()),
        ("name", "VALUE_IN", ()),
        ("name", "EQUAL", ("a", "b")),
        ("name", "CONTAINS", ("a\0",)),
        ("phase", "EQUAL", ("foo",)),
        ("phase", "EQUAL", ("9" * 30,)),
        ("phase", "CONTAINS", ("1",)),
        ("created_at", "ENDS_WITH", ("1",)),
        ("created_at", "EQUAL", ("yesterday",)),
        ("done", "EQUAL", ("maybe",)),
        ("labels.", "EXISTS", ()),
    ],
)
def test_what_cannot_be_is_refused_with_the_name_of_the_field(
    field: str, function: str, values: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidArgument, match=field):
        filtered(field, function, *values)


def test_labels_are_no_fields_where_there_are_none() -> None:
    message = list_pb2.Filter(field="labels.x", function=list_pb2.Filter.EXISTS)
    with pytest.raises(InvalidArgument, match="invalid filter field"):
        conditions_from_proto([message], KNOWN)


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="function 8"):
        conditions_from_proto([list_pb2.Filter(field="name", function=8, values=["x"])], KNOWN)  # type: ignore[arg-type]  # not in the enum


def test_the_order_is_made_total_by_ties() -> None:
    request = list_pb2.ListRequest(
        sort_by_fields=[list_pb2.Sort(key="phase"), list_pb2.Sort(key="name", direction=list_pb2.Sort.ASCENDING)],
        sort_by=list_pb2.Sort(key="created_at"),
    )
    assert orders_from_proto(request, KNOWN, default=(), ties=(NAME, CREATED)) == [
        Order(PHASE, True),
        Order(NAME),
        Order(CREATED),
    ]
    with pytest.raises(InvalidArgument, match="invalid sort field 'nosuch'"):
        orders_from_proto(list_pb2.ListRequest(sort_by=list_pb2.Sort(key="nosuch")), KNOWN, default=(), ties=())


def test_a_filter_text_is_read_term_by_term() -> None:
    assert conditions_from_text("", KNOWN) == []
    assert conditions_from_text(" EQ( phase , FAILED ) + value_in(name, a;b c) +contains(name,1+1)", KNOWN) == [
        Condition(PHASE, Op.EQUAL, (6,)),
        Condition(NAME, Op.VALUE_IN, ("a", "b c")),
        Condition(NAME, Op.CONTAINS, ("1+1",)),
    ]


@pytest.mark.parametrize(
    "text", ["bogus", "eq(nosuch,1)", "eq(phase)", "like(name,x)", "eq(phase,x)", "contains(phase,1)"]
)
def test_a_wrong_filter_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="filter"):
        conditions_from_text(text, KNOWN)


ORDERS = [Order(NAME), Order(PHASE, True)]


@given(st.text(), st.integers(-(2**63), 2**63 - 1))
def test_a_token_brings_back_what_it_was_made_of(name: str, phase: int) -> None:
    page = page_from_token(token_after([name, phase], ORDERS), ORDERS, limit=5)
    assert page.after == (name, phase)


def test_a_number_is_still_an_offset() -> None:
    page = page_from_token("3", ORDERS, limit=5)
    assert (page.after, page.offset) == (None, 3)


@pytest.mark.parametrize(
    "token",
    [
        "abc",
        "-1",
        "1.5",
        "²",
        "bnVsbA",
        "W10",
        "é",
        "9" * 40,
        token_after(["x", 1], ORDERS[:1]),
        token_after(["x"], ORDERS),
    ],
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidArgument, match="invalid token"):
        page_from_token(token, ORDERS, limit=5)


def test_a_token_of_another_order_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="another order"):
        page_from_token(token_after(["x", 1], ORDERS), [Order(NAME), Order(PHASE)], limit=5)


def test_limits() -> None:
    assert page_from_proto(list_pb2.ListRequest(), ORDERS).limit == 50
    assert page_from_proto(list_pb2.ListRequest(limit=200), ORDERS).limit == 200
    with pytest.raises(InvalidArgument, match="invalid limit: 201"):
        page_from_proto(list_pb2.ListRequest(limit=201), ORDERS)
