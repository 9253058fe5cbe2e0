"""Messages to bytes and back: binary protobuf and lenient JSON.

Lenient means that unknown fields of a JSON message are ignored, as the reference backend does: a newer console may send
fields that this server does not know. What cannot be read is the caller's mistake: `invalid_argument`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message

from flyte_binary.domain.errors import InvalidArgument

M = TypeVar("M", bound=Message)

_OBJECT = re.compile(rb"\s*\{")


class Codec(Protocol):
    @property
    def name(self) -> str:
        """As in content types: `proto`, `json`."""
        ...

    def encode(self, message: Message) -> bytes: ...

    def decode(self, data: bytes, message_type: type[M]) -> M:
        """Raises InvalidArgument."""
        ...


class ProtoCodec:
    name = "proto"

    def encode(self, message: Message) -> bytes:
        return message.SerializeToString()

    def decode(self, data: bytes, message_type: type[M]) -> M:
        message = message_type()
        try:
            message.ParseFromString(data)
        except DecodeError as error:
            raise InvalidArgument(f"The request is not a valid {message_type.DESCRIPTOR.full_name}: {error}") from error
        return message


class JsonCodec:
    name = "json"

    def encode(self, message: Message) -> bytes:
        return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()

    def decode(self, data: bytes, message_type: type[M]) -> M:
        message = message_type()
        if not data:
            return message
        if _OBJECT.match(data) is None:
            # The parser would take a string for an object whose fields it does not know.
            raise InvalidArgument(f"The request is not a JSON object, which {message_type.DESCRIPTOR.full_name} needs.")
        try:
            json_format.Parse(data, message, ignore_unknown_fields=True)
        except (json_format.Error, ValueError, TypeError, RecursionError) as error:
            # The parser lets a few mistakes out as plain errors: bytes that are not UTF-8, very deep nesting.
            name = message_type.DESCRIPTOR.full_name
            raise InvalidArgument(f"The request is not a valid JSON form of {name}: {error}") from error
        return message


CODECS: Mapping[str, Codec] = {"proto": ProtoCodec(), "json": JsonCodec()}
