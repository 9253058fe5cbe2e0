"""The type of a literal as a JSON schema (`spec/platform.md` 3.2)."""

from __future__ import annotations

from flyteidl2.core import types_pb2

from flyte_binary.dataproxy.translator.plain import Json, json_of_struct
from flyte_binary.dataproxy.translator.values import dimensionality_name
from flyte_binary.domain.errors import InvalidArgument

_SIMPLE: dict[int, tuple[str, str]] = {
    types_pb2.NONE: ("null", ""),
    types_pb2.STRING: ("string", ""),
    types_pb2.INTEGER: ("integer", ""),
    types_pb2.BOOLEAN: ("boolean", ""),
    types_pb2.FLOAT: ("number", "float"),
    types_pb2.DATETIME: ("string", "datetime"),
    types_pb2.DURATION: ("string", "duration"),
    types_pb2.BINARY: ("string", "binary"),
    types_pb2.ERROR: ("string", "error"),
}
"""The type and the format of each simple type but STRUCT."""

_KINDS = {
    "collection_type": "collection",
    "map_value_type": "map",
    "blob": "blob",
    "enum_type": "enum",
    "structured_dataset_type": "structured-dataset",
    "union_type": "union",
}


def schema_of(type_: types_pb2.LiteralType) -> dict[str, Json]:
    """Raises `InvalidArgument` for the old `schema` type, and for what this contract does not know."""
    kind = type_.WhichOneof("type")
    if kind is None:
        return {"type": "null"}
    if kind == "simple":
        return _simple(type_)
    if kind == "collection_type":
        return {"type": "array", "items": schema_of(type_.collection_type)}
    if kind == "map_value_type":
        return {"type": "object", "additionalProperties": schema_of(type_.map_value_type)}
    if kind == "enum_type":
        return {"type": "string", "enum": list(type_.enum_type.values)}
    if kind == "union_type":
        return {"oneOf": [_variant(variant) for variant in type_.union_type.variants], "format": "union"}
    if kind == "blob":
        return _blob(type_.blob)
    if kind == "structured_dataset_type":
        return _dataset(type_.structured_dataset_type)
    raise InvalidArgument(f"the type {kind} has no launch form; use a structured dataset")


def _simple(type_: types_pb2.LiteralType) -> dict[str, Json]:
    if type_.simple == types_pb2.STRUCT:
        return _struct(type_)
    if type_.simple not in _SIMPLE:
        raise InvalidArgument(f"unknown simple type {type_.simple}")
    name, format_ = _SIMPLE[type_.simple]
    return {"type": name, "format": format_} if format_ else {"type": name}


def _struct(type_: types_pb2.LiteralType) -> dict[str, Json]:
    """The SDK puts the JSON schema of a dataclass, with its name as the title, into the metadata."""
    if not type_.HasField("metadata"):
        return {"type": "object", "additionalProperties": True}
    schema = json_of_struct(type_.metadata)
    schema.pop("additionalProperties", None)
    if "title" in schema:
        schema["dataclass"] = schema.pop("title")
    return schema


def _blob(blob: types_pb2.BlobType) -> dict[str, Json]:
    names: list[Json] = ["SINGLE", "MULTIPART"]
    dimensionality: dict[str, Json] = {
        "type": "string",
        "enum": names,
        "default": dimensionality_name(blob.dimensionality),
    }
    properties: dict[str, Json] = {
        "uri": {"type": "string", "default": ""},
        "format": {"type": "string", "default": blob.format},
        "dimensionality": dimensionality,
    }
    return {"type": "object", "format": "blob", "properties": properties}


def _dataset(dataset: types_pb2.StructuredDatasetType) -> dict[str, Json]:
    properties: dict[str, Json] = {
        "uri": {"type": "string"},
        "format": {"type": "string", "default": dataset.format} if dataset.format else {"type": "string"},
    }
    return {"type": "object", "format": "structured-dataset", "properties": properties}


def _variant(type_: types_pb2.LiteralType) -> dict[str, Json]:
    schema = schema_of(type_)
    schema["title"] = schema.get("dataclass") or _kind_name(type_)
    schema["structure"] = type_.structure.tag
    return schema


def _kind_name(type_: types_pb2.LiteralType) -> str:
    kind = type_.WhichOneof("type")
    if kind == "simple":
        return types_pb2.SimpleType.Name(type_.simple).lower()
    return _KINDS.get(kind, "none") if kind else "none"
