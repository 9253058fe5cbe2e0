"""Launch forms: what is required, what is filled in, what is left out."""

from __future__ import annotations

from typing import Any  # any: JSON

import pytest
from flyteidl2.core import interface_pb2, literals_pb2, types_pb2

from flyte_binary.dataproxy.translator.forms import form_of, literals_of_form, literals_of_values
from flyte_binary.domain.errors import InvalidArgument, Unimplemented

LiteralType = types_pb2.LiteralType
INTEGER = LiteralType(simple=types_pb2.INTEGER)
OPTIONAL = LiteralType(union_type=types_pb2.UnionType(variants=[INTEGER, LiteralType(simple=types_pb2.NONE)]))
FILE = LiteralType(blob=types_pb2.BlobType(format="csv"))


def variables(**types: types_pb2.LiteralType) -> interface_pb2.VariableMap:
    return interface_pb2.VariableMap(
        variables=[
            interface_pb2.VariableEntry(key=name, value=interface_pb2.Variable(type=type_, description=f"the {name}"))
            for name, type_ in types.items()
        ]
    )


def integer(value: int) -> literals_pb2.Literal:
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(integer=value)))


def test_a_form_has_a_field_for_each_input_and_leaves_out_other_literals() -> None:
    form = form_of(variables(n=INTEGER, m=OPTIONAL), {"n": integer(3), "other": integer(4)})
    assert form == {
        "type": "object",
        "title": "Launch Form",
        "required": ["n"],
        "properties": {
            "n": {"type": "integer", "description": "the n", "default": 3},
            "m": {
                "oneOf": [
                    {"type": "integer", "title": "integer", "structure": ""},
                    {"type": "null", "title": "none", "structure": ""},
                ],
                "format": "union",
                "description": "the m",
            },
        },
    }


def test_a_description_that_says_the_name_is_left_out() -> None:
    named = interface_pb2.VariableEntry(key="n", value=interface_pb2.Variable(type=INTEGER, description="n"))
    form: Any = form_of(interface_pb2.VariableMap(variables=[named]), {})
    assert form["properties"]["n"] == {"type": "integer"}


def test_an_input_whose_value_is_none_is_not_required() -> None:
    nothing = literals_pb2.Literal(scalar=literals_pb2.Scalar(none_type=literals_pb2.Void()))
    assert form_of(variables(n=LiteralType(simple=types_pb2.NONE)), {"n": nothing})["required"] == []


def test_the_value_of_a_file_fills_the_fields_of_its_form() -> None:
    blob = literals_pb2.Blob(
        uri="s3://b/k",
        metadata=literals_pb2.BlobMetadata(type=types_pb2.BlobType(format="tsv", dimensionality="MULTIPART")),
    )
    form: Any = form_of(variables(f=FILE), {"f": literals_pb2.Literal(scalar=literals_pb2.Scalar(blob=blob))})
    field = form["properties"]["f"]
    assert "default" not in field
    assert {name: part["default"] for name, part in field["properties"].items()} == {
        "uri": "s3://b/k",
        "format": "tsv",
        "dimensionality": "MULTIPART",
    }


def test_fields_that_nobody_filled_in_are_left_out_and_an_optional_one_is_none() -> None:
    literals = literals_of_form(form_of(variables(n=INTEGER, m=OPTIONAL, f=FILE), {}))
    assert [(literal.name, literal.value.scalar.WhichOneof("value")) for literal in literals] == [("m", "none_type")]


def test_the_defaults_of_a_dataclass_are_collected_from_its_fields() -> None:
    address = {"type": "object", "properties": {"city": {"type": "string", "default": "Oslo"}}}
    person: Any = {
        "type": "object",
        "dataclass": "Person",
        "properties": {"age": {"type": "integer", "default": 5.0}, "address": address, "name": {"type": "string"}},
    }
    (literal,) = literals_of_form({"properties": {"p": person}})
    assert dict(literal.value.scalar.generic.fields["address"].struct_value) == {"city": "Oslo"}
    assert set(literal.value.scalar.generic.fields) == {"age", "address"}


def test_values_follow_the_inputs_and_what_is_not_asked_for_is_ignored() -> None:
    literals = literals_of_values(variables(b=INTEGER, a=OPTIONAL), {"b": 2.0, "c": "ignored"})
    assert [literal.name for literal in literals] == ["b", "a"]
    assert literals[0].value == integer(2)
    assert literals[1].value.scalar.WhichOneof("value") == "none_type"
    assert literals_of_values(interface_pb2.VariableMap(), {"c": 1}) == []


def test_errors_name_the_field() -> None:
    with pytest.raises(InvalidArgument, match=r"^n: a value is required"):
        literals_of_values(variables(n=INTEGER), {})
    with pytest.raises(InvalidArgument, match=r"^n: expected an integer, got a string"):
        literals_of_form({"properties": {"n": {"type": "integer", "default": "x"}}})
    with pytest.raises(InvalidArgument, match="properties is required"):
        literals_of_form({})
    offloaded = literals_pb2.Literal(offloaded_metadata=literals_pb2.LiteralOffloadedMetadata(uri="s3://b"))
    with pytest.raises(Unimplemented, match=r"^n: "):
        form_of(variables(n=INTEGER), {"n": offloaded})
