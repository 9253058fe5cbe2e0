"""Every literal and every type as JSON, and back."""

from __future__ import annotations

import base64
from typing import Any  # any: tables of JSON

import msgpack
import pytest
from flyteidl2.core import literals_pb2, types_pb2
from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2

from flyte_binary.dataproxy.translator.literals import literal_of
from flyte_binary.dataproxy.translator.plain import json_of_struct, struct_of
from flyte_binary.dataproxy.translator.schemas import schema_of
from flyte_binary.dataproxy.translator.types import type_of
from flyte_binary.dataproxy.translator.values import json_of
from flyte_binary.domain.errors import InvalidArgument, Unimplemented

Literal, Scalar, LiteralType = literals_pb2.Literal, literals_pb2.Scalar, types_pb2.LiteralType


def primitive(**value: Any) -> literals_pb2.Literal:
    return Literal(scalar=Scalar(primitive=literals_pb2.Primitive(**value)))


def simple(kind: int) -> types_pb2.LiteralType:
    return LiteralType(simple=kind)  # type: ignore[arg-type] - also kinds that do not exist


def packed(value: Any) -> literals_pb2.Literal:
    content = msgpack.packb(value) if not isinstance(value, bytes) else value
    return Literal(scalar=Scalar(binary=literals_pb2.Binary(value=content, tag="msgpack")))


def struct(value: dict[str, Any]) -> struct_pb2.Struct:
    found = struct_pb2.Struct()
    found.update(value)
    return found


def union(*variants: types_pb2.LiteralType) -> types_pb2.LiteralType:
    return LiteralType(union_type=types_pb2.UnionType(variants=variants))


NONE_VALUE = Literal(scalar=Scalar(none_type=literals_pb2.Void()))
STRING, INTEGER, NOTHING = simple(types_pb2.STRING), simple(types_pb2.INTEGER), simple(types_pb2.NONE)
BLOB = types_pb2.BlobType(format="csv", dimensionality=types_pb2.BlobType.MULTIPART)
DATASET = types_pb2.StructuredDatasetType(format="parquet")
PERSON = {"type": "object", "title": "Person", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


BOTH_WAYS: list[tuple[str, types_pb2.LiteralType, literals_pb2.Literal, Any]] = [
    ("integer", INTEGER, primitive(integer=7), 7),
    ("large integer", INTEGER, primitive(integer=2**63 - 1), "9223372036854775807"),
    ("smallest integer", INTEGER, primitive(integer=-(2**63)), "-9223372036854775808"),
    ("float", simple(types_pb2.FLOAT), primitive(float_value=1.5), 1.5),
    ("infinite float", simple(types_pb2.FLOAT), primitive(float_value=float("-inf")), "-Infinity"),
    ("string", STRING, primitive(string_value="é"), "é"),
    ("boolean", simple(types_pb2.BOOLEAN), primitive(boolean=False), False),
    (
        "datetime",
        simple(types_pb2.DATETIME),
        primitive(datetime=timestamp_pb2.Timestamp(seconds=0)),
        "1970-01-01T00:00:00Z",
    ),
    (
        "datetime with a fraction",
        simple(types_pb2.DATETIME),
        primitive(datetime=timestamp_pb2.Timestamp(seconds=1, nanos=250_000_000)),
        "1970-01-01T00:00:01.250Z",
    ),
    ("duration", simple(types_pb2.DURATION), primitive(duration=duration_pb2.Duration(seconds=5400)), "1h30m0s"),
    ("short duration", simple(types_pb2.DURATION), primitive(duration=duration_pb2.Duration(nanos=1_500_000)), "1.5ms"),
    (
        "negative duration",
        simple(types_pb2.DURATION),
        primitive(duration=duration_pb2.Duration(seconds=-1, nanos=-1)),
        "-1.000000001s",
    ),
    ("no duration", simple(types_pb2.DURATION), primitive(duration=duration_pb2.Duration()), "0s"),
    ("none", NOTHING, NONE_VALUE, {"type": "null"}),
    (
        "struct",
        simple(types_pb2.STRUCT),
        Literal(scalar=Scalar(generic=struct({"a": [1, None, {"b": True}]}))),
        {"a": [1, None, {"b": True}]},
    ),
    (
        "collection",
        LiteralType(collection_type=INTEGER),
        Literal(collection=literals_pb2.LiteralCollection(literals=[primitive(integer=1), primitive(integer=2)])),
        [1, 2],
    ),
    (
        "map",
        LiteralType(map_value_type=STRING),
        Literal(map=literals_pb2.LiteralMap(literals={"type": primitive(string_value="null")})),
        {"type": "null"},
    ),
    (
        "enum",
        LiteralType(enum_type=types_pb2.EnumType(values=["red", "green"])),
        primitive(string_value="green"),
        "green",
    ),
    (
        "blob",
        LiteralType(blob=BLOB),
        Literal(scalar=Scalar(blob=literals_pb2.Blob(uri="s3://b/k", metadata=literals_pb2.BlobMetadata(type=BLOB)))),
        {"uri": "s3://b/k", "format": "csv", "dimensionality": "MULTIPART"},
    ),
    (
        "structured dataset",
        LiteralType(structured_dataset_type=DATASET),
        Literal(
            scalar=Scalar(
                structured_dataset=literals_pb2.StructuredDataset(
                    uri="s3://b/d",
                    metadata=literals_pb2.StructuredDatasetMetadata(structured_dataset_type=DATASET),
                )
            )
        ),
        {"uri": "s3://b/d", "format": "parquet"},
    ),
    (
        "union",
        union(INTEGER, STRING),
        Literal(scalar=Scalar(union=literals_pb2.Union(value=primitive(string_value="12"), type=STRING))),
        "12",
    ),
    (
        "union without a value",
        union(STRING, NOTHING),
        Literal(scalar=Scalar(union=literals_pb2.Union(value=NONE_VALUE, type=NOTHING))),
        {"type": "null"},
    ),
]


@pytest.mark.parametrize(("name", "type_", "literal", "json"), BOTH_WAYS, ids=[row[0] for row in BOTH_WAYS])
def test_a_literal_is_shown_as_json_and_made_of_it(
    name: str, type_: types_pb2.LiteralType, literal: literals_pb2.Literal, json: Any
) -> None:
    shown = json_of_struct(struct_of({"value": json_of(literal)}))["value"]
    assert shown == json
    assert literal_of(shown, type_) == literal


SCHEMAS: list[tuple[str, types_pb2.LiteralType, Any]] = [
    ("none", NOTHING, {"type": "null"}),
    ("string", STRING, {"type": "string"}),
    ("integer", INTEGER, {"type": "integer"}),
    ("boolean", simple(types_pb2.BOOLEAN), {"type": "boolean"}),
    ("float", simple(types_pb2.FLOAT), {"type": "number", "format": "float"}),
    ("datetime", simple(types_pb2.DATETIME), {"type": "string", "format": "datetime"}),
    ("duration", simple(types_pb2.DURATION), {"type": "string", "format": "duration"}),
    ("binary", simple(types_pb2.BINARY), {"type": "string", "format": "binary"}),
    ("error", simple(types_pb2.ERROR), {"type": "string", "format": "error"}),
    ("struct", simple(types_pb2.STRUCT), {"type": "object", "additionalProperties": True}),
    (
        "dataclass",
        LiteralType(simple=types_pb2.STRUCT, metadata=struct(PERSON)),
        {
            "type": "object",
            "dataclass": "Person",
            "properties": {"age": {"type": "integer"}},
            "required": ["age"],
        },
    ),
    ("collection", LiteralType(collection_type=STRING), {"type": "array", "items": {"type": "string"}}),
    ("map", LiteralType(map_value_type=INTEGER), {"type": "object", "additionalProperties": {"type": "integer"}}),
    (
        "enum",
        LiteralType(enum_type=types_pb2.EnumType(values=["red", "green"])),
        {"type": "string", "enum": ["red", "green"]},
    ),
    (
        "blob",
        LiteralType(blob=BLOB),
        {
            "type": "object",
            "format": "blob",
            "properties": {
                "uri": {"type": "string", "default": ""},
                "format": {"type": "string", "default": "csv"},
                "dimensionality": {"type": "string", "enum": ["SINGLE", "MULTIPART"], "default": "MULTIPART"},
            },
        },
    ),
    (
        "structured dataset",
        LiteralType(structured_dataset_type=DATASET),
        {
            "type": "object",
            "format": "structured-dataset",
            "properties": {"uri": {"type": "string"}, "format": {"type": "string", "default": "parquet"}},
        },
    ),
    (
        "union",
        union(LiteralType(simple=types_pb2.STRING, structure=types_pb2.TypeStructure(tag="str")), NOTHING),
        {
            "oneOf": [
                {"type": "string", "title": "string", "structure": "str"},
                {"type": "null", "title": "none", "structure": ""},
            ],
            "format": "union",
        },
    ),
]


@pytest.mark.parametrize(("name", "type_", "schema"), SCHEMAS, ids=[row[0] for row in SCHEMAS])
def test_a_type_is_shown_as_a_schema_and_read_from_it(name: str, type_: types_pb2.LiteralType, schema: Any) -> None:
    assert schema_of(type_) == schema
    assert type_of(json_of_struct(struct_of({"field": schema}))["field"]) == type_


def test_a_type_that_is_not_given_is_none_and_the_old_schema_type_has_no_form() -> None:
    assert schema_of(LiteralType()) == {"type": "null"}
    with pytest.raises(InvalidArgument, match="structured dataset"):
        schema_of(LiteralType(schema=types_pb2.SchemaType()))
    with pytest.raises(InvalidArgument, match="unknown simple type 77"):
        schema_of(simple(77))


@pytest.mark.parametrize(
    ("value", "json"),
    [
        ({"a": 1, "b": [True, None]}, {"a": 1, "b": [True, None]}),
        ({1: "one", None: "nothing", False: "no"}, {"1": "one", "null": "nothing", "false": "no"}),
        ({"raw": b"\xff\x00"}, {"raw": base64.b64encode(b"\xff\x00").decode()}),
        (b"\xc1 is no msgpack", base64.b64encode(b"\xc1 is no msgpack").decode()),
        (msgpack.ExtType(5, b"ab"), base64.b64encode(b"ab").decode()),
        (msgpack.Timestamp(1, 500_000_000), "1970-01-01T00:00:01.500Z"),
        (b"\x91" * 2000 + b"\x01", base64.b64encode(b"\x91" * 2000 + b"\x01").decode()),
    ],
)
def test_packed_values_are_unpacked_and_other_bytes_are_base64(value: Any, json: Any) -> None:
    assert json_of(packed(value)) == json


def test_what_is_nested_too_deeply_for_the_reader_is_refused() -> None:
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    with pytest.raises(InvalidArgument, match="nested too deeply"):
        struct_of({"value": json_of(packed(deep))})


@pytest.mark.parametrize(
    ("literal", "error"),
    [
        (Literal(), InvalidArgument),
        (Literal(scalar=Scalar()), InvalidArgument),
        (primitive(), InvalidArgument),
        (primitive(datetime=timestamp_pb2.Timestamp(seconds=2**60)), InvalidArgument),
        (Literal(scalar=Scalar(union=literals_pb2.Union(type=STRING))), InvalidArgument),
        (Literal(scalar=Scalar(error=types_pb2.Error(message="no"))), Unimplemented),
        (Literal(scalar=Scalar(schema=literals_pb2.Schema(uri="s3://b"))), Unimplemented),
        (Literal(offloaded_metadata=literals_pb2.LiteralOffloadedMetadata(uri="s3://b")), Unimplemented),
    ],
)
def test_literals_without_a_form_in_json_are_refused(literal: literals_pb2.Literal, error: type[Exception]) -> None:
    with pytest.raises(error):
        json_of(literal)


@pytest.mark.parametrize(
    ("json", "type_", "message"),
    [
        (1.5, INTEGER, "expected an integer, got 1.5"),
        (float("nan"), INTEGER, "expected an integer"),
        (float("inf"), INTEGER, "expected an integer"),
        (2.0**63, INTEGER, "64 bits"),
        ("9223372036854775808", INTEGER, "64 bits"),
        ("12", INTEGER, "expected an integer, got a string"),
        (True, INTEGER, "got a boolean"),
        (1.0, simple(types_pb2.BOOLEAN), "true or false"),
        ("x", simple(types_pb2.FLOAT), "expected a number"),
        (1.0, STRING, "expected a string, got a number"),
        ("yesterday", simple(types_pb2.DATETIME), "RFC 3339"),
        ("0000-00-00T00:00:00Z", simple(types_pb2.DATETIME), "RFC 3339"),
        ("1 hour", simple(types_pb2.DURATION), "expected a duration"),
        ("9" * 20, simple(types_pb2.DURATION), "10,000 years"),
        (1e18, simple(types_pb2.DURATION), "10,000 years"),
        (None, STRING, "null is no value of this type"),
        ({"type": "null"}, STRING, "null is no value of this type"),
        ("AAAA", simple(types_pb2.BINARY), "type BINARY"),
        ("AAAA", simple(types_pb2.ERROR), "type ERROR"),
        ("AAAA", simple(77), "type unknown"),
        ("AAAA", LiteralType(schema=types_pb2.SchemaType()), "type schema"),
        (["a"], simple(types_pb2.STRUCT), "expected an object, got an array"),
        ({}, LiteralType(collection_type=STRING), "expected an array, got an object"),
        ("blue", LiteralType(enum_type=types_pb2.EnumType(values=["red"])), "one of red"),
        ({"uri": "a", "format": ""}, LiteralType(blob=BLOB), "dimensionality is required"),
        ({"uri": "a", "format": "", "dimensionality": 7}, LiteralType(blob=BLOB), "SINGLE or MULTIPART"),
        ({"format": "", "dimensionality": 0}, LiteralType(blob=BLOB), "uri is required"),
        ({"uri": 1}, LiteralType(structured_dataset_type=DATASET), "format is required"),
        ({"uri": 1, "format": "csv"}, LiteralType(structured_dataset_type=DATASET), "uri: expected a string"),
        ([], union(STRING, INTEGER), "none of the 2 types"),
    ],
)
def test_json_that_is_no_value_of_the_type_is_refused(json: Any, type_: types_pb2.LiteralType, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        literal_of(json, type_)


@pytest.mark.parametrize(
    ("json", "type_", "literal"),
    [
        ("90", simple(types_pb2.DURATION), primitive(duration=duration_pb2.Duration(seconds=90))),
        (90.0, simple(types_pb2.DURATION), primitive(duration=duration_pb2.Duration(seconds=90))),
        ("+1.5h2m", simple(types_pb2.DURATION), primitive(duration=duration_pb2.Duration(seconds=5520))),
        ("3us4ns", simple(types_pb2.DURATION), primitive(duration=duration_pb2.Duration(nanos=3004))),
        (
            "1970-01-01T02:00:00+02:00",
            simple(types_pb2.DATETIME),
            primitive(datetime=timestamp_pb2.Timestamp(seconds=0)),
        ),
        (7.0, simple(types_pb2.FLOAT), primitive(float_value=7)),
    ],
)
def test_other_spellings_of_a_value_are_read(json: Any, type_: types_pb2.LiteralType, literal: Any) -> None:
    assert literal_of(json, type_) == literal


def test_a_fraction_goes_to_the_float_of_a_union_whatever_the_order() -> None:
    number = union(INTEGER, simple(types_pb2.FLOAT))
    assert literal_of(1.5, number).scalar.union.value == primitive(float_value=1.5)
    assert literal_of(2.0, number).scalar.union.value == primitive(integer=2)


def test_the_dimensionality_of_a_file_is_also_read_as_a_number() -> None:
    literal = literal_of({"uri": "s3://b/k", "format": "", "dimensionality": 1.0}, LiteralType(blob=BLOB))
    assert literal.scalar.blob.metadata.type.dimensionality == types_pb2.BlobType.MULTIPART


@pytest.mark.parametrize("schema", ["text", {}, {"type": "thing"}, {"type": "array"}, {"type": "string", "enum": [1]}])
def test_schemas_of_no_launch_form_are_refused(schema: Any) -> None:
    with pytest.raises(InvalidArgument):
        type_of(schema)
