"""Connect over HTTP/1.1 as bytes: which message a method takes, envelopes, gzip, and proto3 JSON for the record."""

from __future__ import annotations

import gzip
import importlib
import json
import struct
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.message import Message

Json = Any  # proto3 JSON documents of some sixty message types: their shape is what is under test, not a given

SERVICE_MODULES = (
    "flyteidl2.actions.actions_service_pb2",
    "flyteidl2.auth.auth_service_pb2",
    "flyteidl2.auth.identity_pb2",
    "flyteidl2.cacheservice.cacheservice_pb2",
    "flyteidl2.cacheservice.v2.cacheservice_pb2",
    "flyteidl2.cluster.service_pb2",
    "flyteidl2.dataproxy.dataproxy_service_pb2",
    "flyteidl2.imagebuilder.service_pb2",
    "flyteidl2.project.project_service_pb2",
    "flyteidl2.secret.secret_pb2",
    "flyteidl2.settings.settings_service_pb2",
    "flyteidl2.task.task_service_pb2",
    "flyteidl2.trigger.trigger_service_pb2",
    "flyteidl2.workflow.events_proxy_service_pb2",
    "flyteidl2.workflow.internal_run_service_pb2",
    "flyteidl2.workflow.queue_service_pb2",
    "flyteidl2.workflow.run_logs_service_pb2",
    "flyteidl2.workflow.run_service_pb2",
    "flyteidl2.workflow.state_service_pb2",
    "flyteidl2.workflow.translator_service_pb2",
)
"""Modules that define the services of the recordings we compare with. A later part adds its own here."""

_END_OF_STREAM = 0x02
_COMPRESSED = 0x01


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC: its message classes and whether the server streams."""

    request: type[Message]
    response: type[Message]
    server_stream: bool


def method_of(path: str) -> Method | None:
    """The RPC behind `flyteidl2.pkg.Service/Name` (a leading slash is allowed); None when it is not one of ours."""
    for module in SERVICE_MODULES:
        importlib.import_module(module)
    service_name, _, method_name = path.strip("/").partition("/")
    try:
        service = descriptor_pool.Default().FindServiceByName(service_name)
    except KeyError:
        return None
    method = service.methods_by_name.get(method_name)
    if method is None:
        return None
    return Method(
        request=message_factory.GetMessageClass(method.input_type),
        response=message_factory.GetMessageClass(method.output_type),
        server_stream=method.server_streaming,
    )


def json_from_bytes(body: bytes, kind: type[Message], content_type: str = "application/proto") -> Json:
    """A message body as proto3 JSON, defaults omitted, as the recordings hold it."""
    if "json" in content_type:
        message = json_format.Parse(body or b"{}", kind(), ignore_unknown_fields=True)
    else:
        message = kind()
        message.ParseFromString(body)
    return json_format.MessageToDict(message)


def bytes_from_json(document: Json, kind: type[Message]) -> bytes:
    """The binary form of a proto3 JSON document. Raises json_format.ParseError for a field that does not exist."""
    message: Message = json_format.ParseDict(document, kind())
    return message.SerializeToString()


def envelope(payload: bytes) -> bytes:
    """One uncompressed Connect stream message."""
    return struct.pack(">BI", 0, len(payload)) + payload


class Envelopes:
    """Splits a Connect stream body, fed in arbitrary pieces, into its messages and its end."""

    def __init__(self, kind: type[Message], content_type: str) -> None:
        self._kind = kind
        self._content_type = content_type
        self._buffer = b""

    def feed(self, piece: bytes) -> list[Json]:
        """`{"msg": …}` for each whole message in what has arrived, `{"end": …}` for the end of the stream."""
        self._buffer += piece
        found: list[Json] = []
        while len(self._buffer) >= 5:
            flags, size = struct.unpack(">BI", self._buffer[:5])
            if len(self._buffer) < 5 + size:
                break
            payload = self._buffer[5 : 5 + size]
            self._buffer = self._buffer[5 + size :]
            if flags & _COMPRESSED:
                payload = gzip.decompress(payload)
            if flags & _END_OF_STREAM:
                found.append({"end": json.loads(payload or b"{}")})
            else:
                found.append({"msg": json_from_bytes(payload, self._kind, self._content_type)})
        return found


def unpacked(body: bytes, encoding: str | None) -> bytes:
    """A body without its HTTP content encoding (gzip or none)."""
    return gzip.decompress(body) if encoding == "gzip" and body else body


def answer_of(status: int, body: bytes, content_type: str, kind: type[Message]) -> Json:
    """`{"response": …}` or `{"error": …}` of a unary call; an error body that is not Connect's is kept as raw text."""
    if status == 200:
        return {"response": json_from_bytes(body, kind, content_type)}
    try:
        document = json.loads(body)
    except ValueError:
        return {"error": {"raw": body.decode("utf-8", "replace")}}
    return {"error": document if isinstance(document, dict) else {"raw": body.decode("utf-8", "replace")}}
