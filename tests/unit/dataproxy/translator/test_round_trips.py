"""Whatever is shown as JSON comes back as it was."""

from __future__ import annotations

from typing import TypeAlias

from flyteidl2.core import interface_pb2, literals_pb2, types_pb2
from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.dataproxy.translator.forms import form_of, literals_of_form, literals_of_values
from flyte_binary.dataproxy.translator.plain import json_of_struct, struct_of
from flyte_binary.dataproxy.translator.times import duration_text, parse_duration
from flyte_binary.dataproxy.translator.values import json_of

Literal, Scalar, LiteralType = literals_pb2.Literal, literals_pb2.Scalar, types_pb2.LiteralType
Typed: TypeAlias = tuple[types_pb2.LiteralType, st.SearchStrategy[literals_pb2.Literal]]
"""A type and its literals."""

TEXT = st.text(max_size=8)
MOST_SECONDS = 315_576_000_000


def primitives(kind: types_pb2.SimpleType, field: str, values: st.SearchStrategy[object]) -> Typed:
    literals = values.map(lambda value: Literal(scalar=Scalar(primitive=literals_pb2.Primitive(**{field: value}))))
    return LiteralType(simple=kind), literals


def duration(nanoseconds: int) -> duration_pb2.Duration:
    seconds, nanos = divmod(abs(nanoseconds), 10**9)
    sign = -1 if nanoseconds < 0 else 1
    return duration_pb2.Duration(seconds=sign * seconds, nanos=sign * nanos)


DURATIONS = st.integers(-MOST_SECONDS * 10**9, MOST_SECONDS * 10**9).map(duration)
TIMES = st.builds(
    timestamp_pb2.Timestamp, seconds=st.integers(-62135596800, 253402300799), nanos=st.integers(0, 10**9 - 1)
)
SIMPLE: list[Typed] = [
    primitives(types_pb2.INTEGER, "integer", st.integers(-(2**63), 2**63 - 1)),
    primitives(types_pb2.FLOAT, "float_value", st.floats(allow_nan=False)),
    primitives(types_pb2.STRING, "string_value", TEXT),
    primitives(types_pb2.BOOLEAN, "boolean", st.booleans()),
    primitives(types_pb2.DATETIME, "datetime", TIMES),
    primitives(types_pb2.DURATION, "duration", DURATIONS),
]


def structs() -> st.SearchStrategy[literals_pb2.Literal]:
    leaves = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
    values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
    return st.dictionaries(TEXT, values, max_size=3).map(lambda value: Literal(scalar=Scalar(generic=_struct(value))))


def _struct(value: dict[str, object]) -> struct_pb2.Struct:
    found = struct_pb2.Struct()
    found.update(value)
    return found


def blob(format_: str, uri: str, dimensionality: int) -> Typed:
    type_ = types_pb2.BlobType(format=format_, dimensionality=dimensionality)  # type: ignore[arg-type] - a number of it
    value = literals_pb2.Blob(uri=uri, metadata=literals_pb2.BlobMetadata(type=type_))
    return LiteralType(blob=type_), st.just(Literal(scalar=Scalar(blob=value)))


def dataset(format_: str, uri: str) -> Typed:
    type_ = types_pb2.StructuredDatasetType(format=format_)
    metadata = literals_pb2.StructuredDatasetMetadata(structured_dataset_type=type_)
    value = literals_pb2.StructuredDataset(uri=uri, metadata=metadata)
    return LiteralType(structured_dataset_type=type_), st.just(Literal(scalar=Scalar(structured_dataset=value)))


def enum(members: list[str]) -> Typed:
    literals = st.sampled_from(members).map(
        lambda member: Literal(scalar=Scalar(primitive=literals_pb2.Primitive(string_value=member)))
    )
    return LiteralType(enum_type=types_pb2.EnumType(values=members)), literals


def collection(item: Typed) -> Typed:
    literals = st.lists(item[1], max_size=3).map(
        lambda items: Literal(collection=literals_pb2.LiteralCollection(literals=items))
    )
    return LiteralType(collection_type=item[0]), literals


def mapping(item: Typed) -> Typed:
    literals = st.dictionaries(TEXT, item[1], max_size=3).map(
        lambda items: Literal(map=literals_pb2.LiteralMap(literals=items))
    )
    return LiteralType(map_value_type=item[0]), literals


def optional(item: Typed) -> Typed:
    nothing = LiteralType(simple=types_pb2.NONE, structure=types_pb2.TypeStructure(tag="none"))
    variant = LiteralType()
    variant.CopyFrom(item[0])
    variant.structure.tag = "some"
    none = Literal(scalar=Scalar(none_type=literals_pb2.Void()))
    literals = st.just(_in_union(none, nothing)) | item[1].map(lambda value: _in_union(value, variant))
    return LiteralType(union_type=types_pb2.UnionType(variants=[variant, nothing])), literals


def _in_union(value: literals_pb2.Literal, variant: types_pb2.LiteralType) -> literals_pb2.Literal:
    return Literal(scalar=Scalar(union=literals_pb2.Union(value=value, type=variant)))


PLAIN = st.one_of(
    st.sampled_from(SIMPLE),
    st.just((LiteralType(simple=types_pb2.STRUCT), structs())),
    st.builds(blob, TEXT, st.text(min_size=1, max_size=8), st.sampled_from([0, 1])),
    st.builds(dataset, TEXT, TEXT),
    st.lists(TEXT, min_size=1, max_size=3, unique=True).map(enum),
)
TYPED = st.recursive(PLAIN, lambda item: item.map(collection) | item.map(mapping), max_leaves=3)
TYPED |= PLAIN.map(optional) | PLAIN.map(optional).map(collection)


def variables(type_: types_pb2.LiteralType) -> interface_pb2.VariableMap:
    return interface_pb2.VariableMap(
        variables=[interface_pb2.VariableEntry(key="x", value=interface_pb2.Variable(type=type_))]
    )


@given(st.data())
def test_a_literal_comes_back_from_its_json(data: st.DataObject) -> None:
    type_, literals = data.draw(TYPED)
    literal = data.draw(literals)
    sent = struct_of({"x": json_of(literal)})
    (returned,) = literals_of_values(variables(type_), json_of_struct(sent))
    assert returned.value == literal


@given(st.data())
def test_a_literal_comes_back_from_its_launch_form(data: st.DataObject) -> None:
    type_, literals = data.draw(TYPED)
    literal = data.draw(literals)
    form = struct_of(form_of(variables(type_), {"x": literal}))
    (returned,) = literals_of_form(json_of_struct(form))
    assert returned.value == literal


@given(DURATIONS)
def test_a_duration_comes_back_from_its_text(duration: duration_pb2.Duration) -> None:
    assert parse_duration(duration_text(duration)) == duration
