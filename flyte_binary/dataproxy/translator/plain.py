"""JSON as Python values, and as the `google.protobuf.Struct` in which it travels."""

from __future__ import annotations

import math
from typing import TypeAlias

from google.protobuf import struct_pb2

from flyte_binary.domain.errors import InvalidArgument

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

EXACT = 2**53
"""Up to here a double holds every integer. What is beyond travels as decimal text, as in protobuf's own JSON."""

NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""JSON has no such numbers; they travel under the names that protobuf's JSON gives them."""

_ROOM = 90
"""Levels of messages within a response: protobuf's parsers refuse more than 100."""


def struct_of(json: dict[str, Json]) -> struct_pb2.Struct:
    """Raises `InvalidArgument` for what is nested too deeply to be read by the other side."""
    struct = struct_pb2.Struct()
    for name, value in json.items():
        _fill(struct.fields[name], value, _ROOM)
    return struct


def json_of_struct(struct: struct_pb2.Struct) -> dict[str, Json]:
    return {name: _json_of(value) for name, value in struct.fields.items()}


def is_null(json: Json) -> bool:
    """Null is also written as its own schema, because a field's default cannot be told from no default otherwise."""
    return json is None or json == {"type": "null"}


def _fill(value: struct_pb2.Value, json: Json, room: int) -> None:
    if room <= 0:
        raise InvalidArgument("the value is nested too deeply to be shown as JSON")
    if json is None:
        value.null_value = struct_pb2.NULL_VALUE
    elif isinstance(json, bool):
        value.bool_value = json
    elif isinstance(json, str):
        value.string_value = json
    elif isinstance(json, int):
        _fill_integer(value, json)
    elif isinstance(json, float):
        _fill_float(value, json)
    elif isinstance(json, list):
        value.list_value.SetInParent()
        for item in json:
            _fill(value.list_value.values.add(), item, room - 2)
    else:
        value.struct_value.SetInParent()
        for name, item in json.items():
            _fill(value.struct_value.fields[name], item, room - 3)


def _fill_integer(value: struct_pb2.Value, json: int) -> None:
    if abs(json) <= EXACT:
        value.number_value = json
    else:
        value.string_value = str(json)


def _fill_float(value: struct_pb2.Value, json: float) -> None:
    if math.isfinite(json):
        value.number_value = json
    elif math.isnan(json):
        value.string_value = "NaN"
    else:
        value.string_value = "Infinity" if json > 0 else "-Infinity"


def _json_of(value: struct_pb2.Value) -> Json:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return json_of_struct(value.struct_value)
    if kind == "list_value":
        return [_json_of(item) for item in value.list_value.values]
    if kind == "number_value":
        return value.number_value
    if kind == "string_value":
        return value.string_value
    return value.bool_value if kind == "bool_value" else None
