"""Requests made from the descriptors: missing, empty, huge, negative and unknown parts of every message."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

TEXTS = (
    "",
    "flytesnacks",
    "development",
    "a0",
    "r1",
    "v1",
    "..",
    "a/b",
    "a\0b",
    "x" * 300,
    "é" * 80,
    "%_'\"\\",
    "-1",
    "phase",
    "created_at",
    "labels.",
    "2026-01-01",
)
_INTEGERS = (0, 1, 2, 7, 100, 2**31 - 1)
_EDGES = {
    FieldDescriptor.CPPTYPE_INT32: (-1, -(2**31)),
    FieldDescriptor.CPPTYPE_INT64: (-1, -(2**63), 2**63 - 1, 253_402_300_800),
    FieldDescriptor.CPPTYPE_UINT32: (2**32 - 1,),
    FieldDescriptor.CPPTYPE_UINT64: (2**64 - 1,),
    FieldDescriptor.CPPTYPE_ENUM: (-1, 99),
}
_DEPTH = 7


def message(descriptor: Descriptor, chance: random.Random, depth: int = 0) -> Message:
    """With each field set or not."""
    made: Any = GetMessageClass(descriptor)()
    likely = 0.75 if depth < 3 else 0.3
    for field in descriptor.fields:
        if depth >= _DEPTH or chance.random() > likely:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _fill_map(made, field, chance, depth)
        elif field.is_repeated:
            values = [_value(field, chance, depth) for _ in range(chance.choice((0, 1, 1, 3)))]
            getattr(made, field.name).extend(values)
        elif field.message_type is not None:
            getattr(made, field.name).CopyFrom(message(field.message_type, chance, depth + 1))
        else:
            setattr(made, field.name, _value(field, chance, depth))
    return made


def _fill_map(made: Any, field: FieldDescriptor, chance: random.Random, depth: int) -> None:
    key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
    target = getattr(made, field.name)
    name = _value(key, chance, depth)
    if value.message_type is None:
        target[name] = _value(value, chance, depth)
    else:
        target[name].CopyFrom(message(value.message_type, chance, depth + 1))


def _value(field: FieldDescriptor, chance: random.Random, depth: int) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_MESSAGE:
        return message(field.message_type, chance, depth + 1)
    if kind == FieldDescriptor.CPPTYPE_STRING:
        text = chance.choice(TEXTS)
        return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return chance.random() < 0.5
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return chance.choice((0.0, -1.5, float("inf"), float("nan")))
    return chance.choice((*_INTEGERS, *_EDGES.get(kind, ())))


def body(request: Message, chance: random.Random) -> bytes:
    """Mostly well-formed; else cut off, followed by an unknown field, or not UTF-8."""
    data = request.SerializeToString()
    match chance.randrange(8):
        case 0:
            return data[: len(data) // 2]
        case 1:
            return data + b"\xfa\x3f\x03abc"
        case 2:
            return data + b"\x0a\x02\xff\xfe"
        case _:
            return data
