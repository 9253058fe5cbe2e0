"""Connect's unary calls: plain HTTP, POST or (for methods without side effects) GET.

Source: connectrpc.com/docs/protocol, "Unary-Request" to "Unary-Get-Request".
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from urllib.parse import parse_qsl

from google.protobuf.message import Message

from flyte_binary.domain.errors import InvalidArgument, Unimplemented
from flyte_binary.rpc.call_headers import check_connect_version, connect_deadline
from flyte_binary.rpc.calls import Call
from flyte_binary.rpc.codec import Codec
from flyte_binary.rpc.compression import GZIP, accepts_gzip, compress, inflate, request_encoding
from flyte_binary.rpc.errors import WireError, raise_if_cancelled, wire_error
from flyte_binary.rpc.exchange import ClientGone, HeaderList, header_pairs
from flyte_binary.rpc.identity import RequestContext


async def serve_unary(call: Call, codec: Codec, query: dict[str, str] | None) -> None:
    """`query` holds the parameters of a GET."""
    context: RequestContext | None = None
    try:
        check_connect_version(call.exchange)
        deadline = connect_deadline(call.exchange)
        context = await call.context(deadline)
        request = await (_read_post(call, codec) if query is None else _read_get(call, codec, query))
        async with asyncio.timeout_at(deadline):
            response = await _function(call)(request, context)
        body = codec.encode(response)
    except ClientGone:
        call.finished("canceled")
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - everything a handler raises becomes an answer, and our bugs a log line
        raise_if_cancelled(error)
        await _respond_error(call, context, wire_error(error, call.method.full_name))
    else:
        await _respond(call, context, codec, body)


def get_query(query_string: bytes) -> dict[str, str]:
    return dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True, encoding="utf-8", errors="replace"))


async def _read_post(call: Call, codec: Codec) -> Message:
    exchange = call.exchange
    limit = call.settings.limit_bytes
    encoding = request_encoding(exchange.headers.get(b"content-encoding"))
    body = await exchange.body(limit_bytes=limit)
    if encoding == GZIP and body:
        body = await inflate(body, limit_bytes=limit)
    return codec.decode(body, call.method.request_type)


async def _read_get(call: Call, codec: Codec, query: dict[str, str]) -> Message:
    if query.get("connect", "v1") != "v1":
        raise InvalidArgument(f"The parameter connect must be v1, not {query['connect']!r}.")
    if "message" not in query:
        raise InvalidArgument("A GET request needs the parameter message.")
    body = query["message"].encode()
    if query.get("base64") == "1":
        body = _from_base64(body)
    if request_encoding(query.get("compression", "").encode()) == GZIP and body:
        body = await inflate(body, limit_bytes=call.settings.limit_bytes)
    return codec.decode(body, call.method.request_type)


def _from_base64(text: bytes) -> bytes:
    """URL-safe, padded or not."""
    try:
        return base64.b64decode(text.rstrip(b"=") + b"=" * (-len(text.rstrip(b"=")) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise InvalidArgument(f"The parameter message is not URL-safe base64: {error}") from error


def _function(call: Call):
    function = call.method.function
    if function is None:
        raise Unimplemented(f"{call.method.full_name} is not available on this server.")
    return function


async def _respond(call: Call, context: RequestContext, codec: Codec, body: bytes) -> None:
    headers = [(b"content-type", b"application/" + codec.name.encode()), (b"vary", b"Accept-Encoding")]
    packed = compress(body) if accepts_gzip(call.exchange.headers.get(b"accept-encoding")) else None
    if packed is not None:
        headers.append((b"content-encoding", b"gzip"))
        body = packed
    headers += _metadata(context)
    await call.exchange.respond(200, headers, body)
    call.finished("ok")


async def _respond_error(call: Call, context: RequestContext | None, error: WireError) -> None:
    headers = [(b"content-type", b"application/json"), *_metadata(context)]
    await call.exchange.respond(error.http_status, headers, error.to_json_bytes())
    call.finished(error.code)


def _metadata(context: RequestContext | None) -> HeaderList:
    if context is None:
        return []
    trailers = [(f"trailer-{name}", value) for name, value in context.response_trailers]
    return header_pairs([*context.response_headers, *trailers])
