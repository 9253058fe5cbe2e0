"""The suite's test service, which answers as each request demands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any
from urllib.parse import parse_qsl

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from google.protobuf import any_pb2
from google.protobuf.message import Message

from flyte_binary.rpc.identity import RequestContext
from tests.conformance.contract import message_type

# any, below: the messages are made from descriptors when the tests run; static types do not exist.
_CODES = list(Code)


class ConformanceService:
    async def unary(self, request: Any, context: RequestContext) -> Message:
        return message_type("UnaryResponse")(payload=await _single(request, [request], context))

    async def idempotent_unary(self, request: Any, context: RequestContext) -> Message:
        return message_type("IdempotentUnaryResponse")(payload=await _single(request, [request], context))

    async def client_stream(self, requests: AsyncIterator[Any], context: RequestContext) -> Message:
        received = [request async for request in requests]
        first = received[0] if received else message_type("ClientStreamRequest")()
        return message_type("ClientStreamResponse")(payload=await _single(first, received, context))

    async def server_stream(self, request: Any, context: RequestContext) -> AsyncIterator[Message]:
        definition = request.response_definition
        _set_metadata(definition, context)
        info: Message | None = _info([request], context)
        for data in definition.response_data:
            await asyncio.sleep(definition.response_delay_ms / 1000)
            yield message_type("ServerStreamResponse")(payload=_payload(data, info))
            info = None
        _raise_error(definition, info)

    async def bidi_stream(self, requests: AsyncIterator[Any], context: RequestContext) -> AsyncIterator[Message]:
        received = [request async for request in requests]  # HTTP/1.1 is half duplex
        first = received[0] if received else message_type("BidiStreamRequest")()
        definition = first.response_definition
        _set_metadata(definition, context)
        info: Message | None = _info(received, context)
        for data in definition.response_data:
            await asyncio.sleep(definition.response_delay_ms / 1000)
            yield message_type("BidiStreamResponse")(payload=_payload(data, info))
            info = None
        _raise_error(definition, info)


async def _single(first: Any, received: Iterable[Any], context: RequestContext) -> Message:
    definition = first.response_definition
    _set_metadata(definition, context)
    info = _info(received, context)
    await asyncio.sleep(definition.response_delay_ms / 1000)
    _raise_error(definition, info)
    return _payload(definition.response_data, info)


def _set_metadata(definition: Any, context: RequestContext) -> None:
    context.response_headers += _pairs(definition.response_headers)
    context.response_trailers += _pairs(definition.response_trailers)


def _pairs(headers: Iterable[Any]) -> list[tuple[str, str]]:
    return [(header.name, value) for header in headers for value in header.value]


def _payload(data: bytes, info: Message | None) -> Message:
    return message_type("ConformancePayload")(data=data, request_info=info)


def _info(received: Iterable[Any], context: RequestContext) -> Message:
    info = message_type("ConformancePayload.RequestInfo")()
    for name in dict.fromkeys(context.headers.keys()):
        info.request_headers.add(name=name, value=context.headers.getlist(name))
    left = context.seconds_left()
    if left is not None:
        info.timeout_ms = round(left * 1000)
    for request in received:
        info.requests.add().Pack(request)
    if context.scope["method"] == "GET":
        for name, value in parse_qsl(context.scope["query_string"].decode(), keep_blank_values=True):
            info.connect_get_info.query_params.add(name=name, value=[value])
    return info


def _raise_error(definition: Any, info: Message | None) -> None:
    """The information on the request goes into the details if no message has carried it."""
    if not definition.HasField("error"):
        return
    error = definition.error
    details = list(error.details)
    if info is not None:
        packed = any_pb2.Any()
        packed.Pack(info)
        details.append(packed)
    raise ConnectError(_CODES[error.code - 1], error.message, details)
