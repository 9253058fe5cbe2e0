"""The RPC server as an ASGI application: Connect and gRPC-Web, binary and JSON, over HTTP/1.1.

It is our own because the one of connectrpc 0.10 does not notice a client that leaves an idle stream, has no deadlines,
no bound on what gzip makes of a body, and answers `unknown` for what it cannot parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.types import Receive, Scope, Send

from flyte_binary.rpc.calls import Call, CallSettings
from flyte_binary.rpc.codec import CODECS
from flyte_binary.rpc.errors import WireError
from flyte_binary.rpc.exchange import Exchange
from flyte_binary.rpc.framing import CONNECT, GRPC_WEB, Framing, grpc_status
from flyte_binary.rpc.method import Kind, Method
from flyte_binary.rpc.stream import serve_stream
from flyte_binary.rpc.unary import get_query, serve_unary

_FLYTE_METHOD = re.compile(r"/(flyteidl2(?:\.\w+)+)/(\w+)")
_UNARY = {b"application/" + name.encode(): codec for name, codec in CODECS.items()}
_STREAMS: dict[bytes, tuple[Framing, str]] = {
    **{framing.content_type + name.encode(): (framing, name) for framing in (CONNECT, GRPC_WEB) for name in CODECS},
    b"application/grpc-web": (GRPC_WEB, "proto"),
}
_ACCEPTED = b", ".join([*_UNARY, *_STREAMS])
_PLAIN = (b"content-type", b"text/plain; charset=utf-8")


class RpcApplication:
    """Serves the methods of all mounted services."""

    def __init__(self, methods: Iterable[Method], settings: CallSettings) -> None:
        self._methods = {"/" + method.full_name: method for method in methods}
        self._settings = settings

    @property
    def services(self) -> set[str]:
        """Full names of the mounted services."""
        return {method.service for method in self._methods.values()}

    def serves(self, path: str) -> bool:
        """Whether the path is one of RPC. Any method of the contract counts, so that a service that is not there is
        answered in the caller's protocol."""
        return path in self._methods or _FLYTE_METHOD.fullmatch(path) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        method = self._methods.get(scope["path"])
        if method is None:
            await _refuse_path(exchange)
            return
        content_type = _content_type(exchange)
        if scope["method"] == "GET":
            await self._get(exchange, method)
        elif scope["method"] != "POST":
            await _not_allowed(exchange, method)
        elif method.kind is Kind.UNARY and (codec := _UNARY.get(content_type)) is not None:
            await serve_unary(Call(exchange, method, self._settings), codec, None)
        elif (stream := _stream(method, content_type)) is not None:
            framing, codec_name = stream
            await serve_stream(Call(exchange, method, self._settings), CODECS[codec_name], framing)
        elif content_type.startswith(b"application/grpc") and not content_type.startswith(b"application/grpc-web"):
            await _refuse_grpc(exchange)
        else:
            await _refuse_content_type(exchange, method, content_type)

    async def _get(self, exchange: Exchange, method: Method) -> None:
        if not method.safe or method.kind is not Kind.UNARY:
            await _not_allowed(exchange, method)
            return
        query = get_query(exchange.scope.get("query_string", b""))
        codec = CODECS.get(query.get("encoding", ""))
        if codec is None:
            await exchange.respond(415, [_PLAIN], b"The parameter encoding must be json or proto.\n")
            return
        await serve_unary(Call(exchange, method, self._settings), codec, query)


def _content_type(exchange: Exchange) -> bytes:
    return exchange.headers.get(b"content-type", b"").split(b";")[0].strip().lower()


def _stream(method: Method, content_type: bytes) -> tuple[Framing, str] | None:
    """The framing and codec of an enveloped request; Connect has none for unary methods."""
    stream = _STREAMS.get(content_type)
    if stream is not None and stream[0] is CONNECT and method.kind is Kind.UNARY:
        return None
    return stream


async def _refuse_path(exchange: Exchange) -> None:
    match = _FLYTE_METHOD.fullmatch(exchange.scope["path"])
    if match is None:
        await exchange.respond(404, [_PLAIN], b"404 page not found\n")
        return
    error = WireError("unimplemented", f"{match[1]}/{match[2]} is not available on this server.")
    stream = _STREAMS.get(_content_type(exchange))
    if stream is None:
        await exchange.respond(error.http_status, [(b"content-type", b"application/json")], error.to_json_bytes())
        return
    framing, codec_name = stream
    headers = [(b"content-type", framing.content_type + codec_name.encode())]
    await exchange.respond(200, headers, framing.end(error, []))


async def _not_allowed(exchange: Exchange, method: Method) -> None:
    allowed = b"GET, POST" if method.safe and method.kind is Kind.UNARY else b"POST"
    await exchange.respond(405, [(b"allow", allowed), _PLAIN], b"This method is called with " + allowed + b".\n")


async def _refuse_grpc(exchange: Exchange) -> None:
    """gRPC proper needs HTTP/2, which this server does not speak: an answer of headers alone, as gRPC knows it."""
    error = WireError("unimplemented", "gRPC needs HTTP/2; call this server with Connect or gRPC-Web over HTTP/1.1.")
    status = [(name.encode(), value.encode()) for name, value in grpc_status(error)]
    await exchange.respond(415, [_PLAIN, *status], error.message.encode() + b"\n")


async def _refuse_content_type(exchange: Exchange, method: Method, content_type: bytes) -> None:
    text = f"The content type {content_type.decode('latin-1')!r} does not fit {method.full_name} ({method.kind.value})."
    await exchange.respond(415, [_PLAIN, (b"accept-post", _ACCEPTED)], text.encode() + b"\n")
