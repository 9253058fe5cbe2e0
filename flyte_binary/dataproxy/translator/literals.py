"""JSON and a type make a literal (`spec/platform.md` 3.2)."""

from __future__ import annotations

import re
from collections.abc import Callable

from flyteidl2.core import literals_pb2, types_pb2

from flyte_binary.dataproxy.translator.plain import EXACT, NOT_FINITE, Json, is_null, struct_of
from flyte_binary.dataproxy.translator.times import duration_of, parse_duration, parse_time
from flyte_binary.dataproxy.translator.types import dimensionality_of, name_of, none_variant
from flyte_binary.domain.errors import InvalidArgument

_INTEGER = re.compile("-?[0-9]{16,19}")
_SECOND = 1_000_000_000


def none_literal() -> literals_pb2.Literal:
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(none_type=literals_pb2.Void()))


def literal_of(json: Json, type_: types_pb2.LiteralType) -> literals_pb2.Literal:
    """Raises `InvalidArgument` if the value is none of the type. Null is one of NONE, and of a union that has it."""
    kind = type_.WhichOneof("type")
    if json is None or (is_null(json) and not _takes_objects(type_)):
        return _null(type_)
    if kind == "simple":
        return _simple(json, type_)
    if kind == "collection_type":
        items = [literal_of(item, type_.collection_type) for item in _array(json)]
        return literals_pb2.Literal(collection=literals_pb2.LiteralCollection(literals=items))
    if kind == "map_value_type":
        values = {key: literal_of(value, type_.map_value_type) for key, value in _object(json).items()}
        return literals_pb2.Literal(map=literals_pb2.LiteralMap(literals=values))
    if kind == "enum_type":
        return _member(json, type_.enum_type)
    if kind == "union_type":
        return _union(json, type_.union_type)
    if kind == "blob":
        return _blob(json)
    if kind == "structured_dataset_type":
        return _dataset(json, type_.structured_dataset_type)
    raise InvalidArgument(f"no value can be given for the type {kind or 'none'}")


def _takes_objects(type_: types_pb2.LiteralType) -> bool:
    """`{"type": "null"}` is then a value as any other."""
    kind = type_.WhichOneof("type")
    return kind == "map_value_type" or (kind == "simple" and type_.simple == types_pb2.STRUCT)


def _null(type_: types_pb2.LiteralType) -> literals_pb2.Literal:
    variant = none_variant(type_)
    if variant is not None:
        return _union_literal(none_literal(), variant)
    if type_.WhichOneof("type") == "simple" and type_.simple == types_pb2.NONE:
        return none_literal()
    raise InvalidArgument("null is no value of this type; only an optional one can be null")


def _simple(json: Json, type_: types_pb2.LiteralType) -> literals_pb2.Literal:
    if type_.simple == types_pb2.STRUCT:
        return literals_pb2.Literal(scalar=literals_pb2.Scalar(generic=struct_of(_object(json))))
    convert = _PRIMITIVES.get(type_.simple)
    if convert is None:
        name = types_pb2.SimpleType.Name(type_.simple) if type_.simple in types_pb2.SimpleType.values() else "unknown"
        raise InvalidArgument(f"no value of the type {name} can be given as JSON")
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=convert(json)))


def _integer(json: Json) -> literals_pb2.Primitive:
    """Text only where JSON's numbers are not exact any more, so that a union of str and int keeps "12" a string."""
    if isinstance(json, str) and _INTEGER.fullmatch(json) and abs(int(json)) > EXACT:
        return _in_range(int(json))
    number = _number(json, "an integer")
    if number != number or number in (float("inf"), float("-inf")) or number != int(number):
        raise InvalidArgument(f"expected an integer, got {number!r}")
    return _in_range(int(number))


def _in_range(number: int) -> literals_pb2.Primitive:
    if not -(2**63) <= number < 2**63:
        raise InvalidArgument("expected an integer of 64 bits, got a larger number")
    return literals_pb2.Primitive(integer=number)


def _float(json: Json) -> literals_pb2.Primitive:
    if isinstance(json, str) and json in NOT_FINITE:
        return literals_pb2.Primitive(float_value=NOT_FINITE[json])
    return literals_pb2.Primitive(float_value=_number(json, "a number"))


def _string(json: Json) -> literals_pb2.Primitive:
    return literals_pb2.Primitive(string_value=_text(json))


def _boolean(json: Json) -> literals_pb2.Primitive:
    if not isinstance(json, bool):
        raise InvalidArgument(f"expected true or false, got {name_of(json)}")
    return literals_pb2.Primitive(boolean=json)


def _datetime(json: Json) -> literals_pb2.Primitive:
    return literals_pb2.Primitive(datetime=parse_time(_text(json)))


def _duration(json: Json) -> literals_pb2.Primitive:
    if isinstance(json, str):
        return literals_pb2.Primitive(duration=parse_duration(json))
    return literals_pb2.Primitive(duration=duration_of(_integer(json).integer * _SECOND))


_PRIMITIVES: dict[int, Callable[[Json], literals_pb2.Primitive]] = {
    types_pb2.INTEGER: _integer,
    types_pb2.FLOAT: _float,
    types_pb2.STRING: _string,
    types_pb2.BOOLEAN: _boolean,
    types_pb2.DATETIME: _datetime,
    types_pb2.DURATION: _duration,
}


def _member(json: Json, enum: types_pb2.EnumType) -> literals_pb2.Literal:
    text = _text(json)
    if text not in enum.values:
        raise InvalidArgument(f"expected one of {', '.join(enum.values)}, got {text[:100]!r}")
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(string_value=text)))


def _union(json: Json, union: types_pb2.UnionType) -> literals_pb2.Literal:
    """The first variant of which it is a value."""
    for variant in union.variants:
        try:
            return _union_literal(literal_of(json, variant), variant)
        except InvalidArgument:
            continue
    raise InvalidArgument(f"{name_of(json)} is a value of none of the {len(union.variants)} types of the union")


def _union_literal(value: literals_pb2.Literal, variant: types_pb2.LiteralType) -> literals_pb2.Literal:
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(union=literals_pb2.Union(value=value, type=variant)))


def _blob(json: Json) -> literals_pb2.Literal:
    uri, format_ = _part(json, "uri"), _part(json, "format")
    dimensionality = _object(json).get("dimensionality")
    if dimensionality is None:
        raise InvalidArgument("dimensionality is required")
    type_ = types_pb2.BlobType(format=format_, dimensionality=dimensionality_of(dimensionality))
    blob = literals_pb2.Blob(uri=uri, metadata=literals_pb2.BlobMetadata(type=type_))
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(blob=blob))


def _dataset(json: Json, type_: types_pb2.StructuredDatasetType) -> literals_pb2.Literal:
    own = types_pb2.StructuredDatasetType()
    own.CopyFrom(type_)
    own.format = _part(json, "format")
    dataset = literals_pb2.StructuredDataset(
        uri=_part(json, "uri"), metadata=literals_pb2.StructuredDatasetMetadata(structured_dataset_type=own)
    )
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(structured_dataset=dataset))


def _part(json: Json, name: str) -> str:
    fields = _object(json)
    if name not in fields:
        raise InvalidArgument(f"{name} is required")
    value = fields[name]
    if not isinstance(value, str):
        raise InvalidArgument(f"{name}: expected a string, got {name_of(value)}")
    return value


def _number(json: Json, expected: str) -> float:
    if isinstance(json, bool) or not isinstance(json, (int, float)):
        raise InvalidArgument(f"expected {expected}, got {name_of(json)}")
    return json


def _text(json: Json) -> str:
    if not isinstance(json, str):
        raise InvalidArgument(f"expected a string, got {name_of(json)}")
    return json


def _array(json: Json) -> list[Json]:
    if not isinstance(json, list):
        raise InvalidArgument(f"expected an array, got {name_of(json)}")
    return json


def _object(json: Json) -> dict[str, Json]:
    if not isinstance(json, dict):
        raise InvalidArgument(f"expected an object, got {name_of(json)}")
    return json
