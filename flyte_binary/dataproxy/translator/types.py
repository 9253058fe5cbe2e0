"""The type of a literal, read from the JSON schema of a launch form: `schemas.py` backwards."""

from __future__ import annotations

from flyteidl2.core import types_pb2

from flyte_binary.dataproxy.translator.plain import Json, struct_of
from flyte_binary.domain.errors import InvalidArgument

_SIMPLE = {
    "null": types_pb2.NONE,
    "integer": types_pb2.INTEGER,
    "boolean": types_pb2.BOOLEAN,
    "number": types_pb2.FLOAT,
}
_TEXTS = {
    "datetime": types_pb2.DATETIME,
    "date-time": types_pb2.DATETIME,
    "duration": types_pb2.DURATION,
    "binary": types_pb2.BINARY,
    "error": types_pb2.ERROR,
}
_OF_THE_FIELD = ("default", "dataclass", "title", "structure")
"""What the launch form adds to the schema of a dataclass."""


def type_of(schema: Json) -> types_pb2.LiteralType:
    """Raises `InvalidArgument` for a schema that no launch form has."""
    if not isinstance(schema, dict):
        raise InvalidArgument(f"expected a JSON schema (an object), got {name_of(schema)}")
    variants = schema.get("oneOf")
    if isinstance(variants, list):
        return types_pb2.LiteralType(
            union_type=types_pb2.UnionType(variants=[_variant(variant) for variant in variants])
        )
    kind = schema.get("type")
    if kind == "string":
        return _text(schema)
    if kind == "array":
        return types_pb2.LiteralType(collection_type=type_of(schema.get("items")))
    if kind == "object":
        return _object(schema)
    if isinstance(kind, str) and kind in _SIMPLE:
        return types_pb2.LiteralType(simple=_SIMPLE[kind])
    raise InvalidArgument(f"a schema of the type {kind!r} is none of a launch form")


def is_optional(type_: types_pb2.LiteralType) -> bool:
    return none_variant(type_) is not None


def none_variant(type_: types_pb2.LiteralType) -> types_pb2.LiteralType | None:
    """That variant of a union which stands for the absence of a value."""
    for variant in type_.union_type.variants:
        if variant.WhichOneof("type") in (None, "simple") and variant.simple == types_pb2.NONE:
            return variant
    return None


def name_of(json: Json) -> str:
    """The name of a JSON value's kind, for messages."""
    if json is None:
        return "null"
    if isinstance(json, bool):
        return "a boolean"
    if isinstance(json, (int, float)):
        return "a number"
    if isinstance(json, str):
        return "a string"
    return "an array" if isinstance(json, list) else "an object"


def _text(schema: dict[str, Json]) -> types_pb2.LiteralType:
    members = schema.get("enum")
    if isinstance(members, list):
        if not all(isinstance(member, str) for member in members):
            raise InvalidArgument("the members of an enum are strings")
        return types_pb2.LiteralType(enum_type=types_pb2.EnumType(values=[str(member) for member in members]))
    format_ = schema.get("format")
    return types_pb2.LiteralType(simple=_TEXTS.get(str(format_), types_pb2.STRING))


def _object(schema: dict[str, Json]) -> types_pb2.LiteralType:
    if schema.get("format") == "blob":
        return types_pb2.LiteralType(blob=_blob(schema))
    if schema.get("format") == "structured-dataset":
        format_ = default_of(schema, "format")
        return types_pb2.LiteralType(
            structured_dataset_type=types_pb2.StructuredDatasetType(format=format_ if isinstance(format_, str) else "")
        )
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return types_pb2.LiteralType(map_value_type=type_of(values))
    if values is not None:
        return types_pb2.LiteralType(simple=types_pb2.STRUCT)
    metadata = {name: value for name, value in schema.items() if name not in _OF_THE_FIELD}
    if "dataclass" in schema:
        metadata["title"] = schema["dataclass"]
    return types_pb2.LiteralType(simple=types_pb2.STRUCT, metadata=struct_of(metadata))


def default_of(schema: dict[str, Json], name: str) -> Json:
    """The default of one property of the schema; None if it has none."""
    properties = schema.get("properties")
    described = properties.get(name) if isinstance(properties, dict) else None
    return described.get("default") if isinstance(described, dict) else None


def dimensionality_of(json: Json) -> types_pb2.BlobType.BlobDimensionality:
    """By name or number. Raises `InvalidArgument`."""
    known = types_pb2.BlobType.BlobDimensionality.DESCRIPTOR
    number = json
    if isinstance(json, str):
        number = known.values_by_name[json].number if json in known.values_by_name else None
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        for value in (types_pb2.BlobType.SINGLE, types_pb2.BlobType.MULTIPART):
            if number == value:
                return value
    raise InvalidArgument(f"dimensionality: expected SINGLE or MULTIPART, got {str(json)[:100]!r}")


def _blob(schema: dict[str, Json]) -> types_pb2.BlobType:
    format_ = default_of(schema, "format")
    dimensionality = default_of(schema, "dimensionality")
    return types_pb2.BlobType(
        format=format_ if isinstance(format_, str) else "",
        dimensionality=types_pb2.BlobType.SINGLE if dimensionality is None else dimensionality_of(dimensionality),
    )


def _variant(schema: Json) -> types_pb2.LiteralType:
    type_ = type_of(schema)
    tag = schema.get("structure") if isinstance(schema, dict) else None
    if isinstance(tag, str) and tag:
        type_.structure.tag = tag
    return type_
