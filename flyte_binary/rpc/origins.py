"""Which web pages may call this server from a browser: its own, and the origins that are listed (CORS)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flyte_binary.rpc.boundary import answer_error
from flyte_binary.rpc.errors import WireError

_METHODS = b"GET, POST, PUT, DELETE, OPTIONS"
_REQUEST_HEADERS = (
    b"Accept, Authorization, Content-Type, Content-Encoding, Content-MD5, Connect-Protocol-Version, Connect-Timeout-Ms,"
    b" Connect-Accept-Encoding, Connect-Content-Encoding, Grpc-Timeout, X-Grpc-Web, X-User-Agent, X-Request-Id"
)
_EXPOSED_HEADERS = b"Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, X-Request-Id"
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class OriginCheck:
    """Requests without an Origin header do not come from a page's script and pass. `allowed` holds origins such as
    `https://console.example.com`, or `*` for all."""

    def __init__(self, app: ASGIApp, allowed: Sequence[str] = ()) -> None:
        self._app = app
        self._allowed = {origin.lower().rstrip("/") for origin in allowed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
        if origin is None or _is_own(origin, scope):
            await self._app(scope, receive, send)
        elif not self._listed(origin):
            await answer_error(send, _refusal(origin))
        elif scope.get("method") == "OPTIONS":
            await _answer_preflight(send, origin)
        else:
            await self._app(scope, receive, _with_headers(send, origin))

    def _listed(self, origin: bytes) -> bool:
        return "*" in self._allowed or origin.decode("latin-1").lower() in self._allowed


def _is_own(origin: bytes, scope: Scope) -> bool:
    """Same host and port. The scheme may differ: a proxy in front may end TLS."""
    scheme, _, host = origin.decode("latin-1").lower().partition("://")
    own = Headers(raw=scope["headers"]).get("host", "").lower()
    default = _DEFAULT_PORTS.get(scheme, "")
    return bool(host) and host.removesuffix(default) == own.removesuffix(default)


def _cors_headers(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-credentials", b"true"),
        (b"access-control-expose-headers", _EXPOSED_HEADERS),
        (b"vary", b"Origin"),
    ]


async def _answer_preflight(send: Send, origin: bytes) -> None:
    headers = [
        *_cors_headers(origin),
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _REQUEST_HEADERS),
        (b"access-control-max-age", b"86400"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _with_headers(send: Send, origin: bytes) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_cors_headers(origin)]
        await send(message)

    return sending


def _refusal(origin: bytes) -> WireError:
    return WireError(
        "permission_denied",
        f"Pages of {origin.decode('latin-1')!r} may not call this server. If they should, add the origin to"
        " runs.server.cors.allowedOrigins.",
    )
