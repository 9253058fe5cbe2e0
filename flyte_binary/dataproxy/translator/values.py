"""A literal as JSON. Only the literal decides, not its declared type (`spec/platform.md` 3.2)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import cast

import msgpack
from flyteidl2.core import literals_pb2, types_pb2
from google.protobuf import timestamp_pb2

from flyte_binary.dataproxy.translator.plain import Json, json_of_struct
from flyte_binary.dataproxy.translator.times import duration_text, time_text
from flyte_binary.domain.errors import InvalidArgument, Unimplemented

NULL: dict[str, Json] = {"type": "null"}

_unpack = cast("Callable[..., object]", msgpack.unpackb)  # pyright: ignore[reportUnknownMemberType] - has no types


def json_of(literal: literals_pb2.Literal) -> Json:
    """Raises `InvalidArgument` for a literal that holds nothing, `Unimplemented` for errors, schemas and values that
    were offloaded: they have no form in JSON."""
    kind = literal.WhichOneof("value")
    if kind == "scalar":
        return _scalar(literal.scalar)
    if kind == "collection":
        return [json_of(item) for item in literal.collection.literals]
    if kind == "map":
        return {key: json_of(value) for key, value in literal.map.literals.items()}
    if kind == "offloaded_metadata":
        raise Unimplemented("a value that was offloaded to a file has no JSON")
    raise InvalidArgument("the literal has no value")


def _scalar(scalar: literals_pb2.Scalar) -> Json:
    kind = scalar.WhichOneof("value")
    if kind == "primitive":
        return _primitive(scalar.primitive)
    if kind == "binary":
        return _binary(scalar.binary.value)
    if kind == "generic":
        return json_of_struct(scalar.generic)
    if kind == "union":
        return json_of(scalar.union.value)
    if kind == "none_type":
        return dict(NULL)
    if kind == "blob":
        return _blob(scalar.blob)
    if kind == "structured_dataset":
        dataset = scalar.structured_dataset
        return {"uri": dataset.uri, "format": dataset.metadata.structured_dataset_type.format}
    if kind is None:
        raise InvalidArgument("the literal has no value")
    raise Unimplemented(f"a literal of the kind {kind} has no JSON")


def _primitive(primitive: literals_pb2.Primitive) -> Json:
    kind = primitive.WhichOneof("value")
    if kind == "integer":
        return primitive.integer
    if kind == "float_value":
        return primitive.float_value
    if kind == "string_value":
        return primitive.string_value
    if kind == "boolean":
        return primitive.boolean
    if kind == "datetime":
        return time_text(primitive.datetime)
    if kind == "duration":
        return duration_text(primitive.duration)
    raise InvalidArgument("the literal has no value")


def _blob(blob: literals_pb2.Blob) -> Json:
    return {
        "uri": blob.uri,
        "format": blob.metadata.type.format,
        "dimensionality": dimensionality_name(blob.metadata.type.dimensionality),
    }


def dimensionality_name(value: int) -> str | int:
    """A number that no name is known for stays one."""
    found = types_pb2.BlobType.BlobDimensionality.DESCRIPTOR.values_by_number.get(value)
    return value if found is None else found.name


def _binary(content: bytes) -> Json:
    """What the SDK packed with msgpack is unpacked; other bytes are shown as base64."""
    try:
        decoded = _unpack(content, strict_map_key=False)
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException):
        return _base64(content)
    return _plain(decoded)


def _plain(value: object) -> Json:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return _base64(value)
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {_key(key): _plain(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, msgpack.Timestamp):
        return time_text(timestamp_pb2.Timestamp(seconds=value.seconds, nanos=value.nanoseconds))
    assert isinstance(value, msgpack.ExtType), f"msgpack has no {type(value)}"
    return _base64(cast("bytes", value.data))  # pyright: ignore[reportUnknownMemberType] - has no types


def _key(key: object) -> str:
    """JSON knows texts only."""
    plain = _plain(key)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
