"""Headers on their way to an app and back. Pure.

Order and repetitions are kept. What concerns one connection only stays behind (RFC 9110, 7.6.1); who asked, how and
under which prefix is added, since the app sees neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.types import Scope

from flyte_binary.app.ingress.target import Target
from flyte_binary.rpc.identity import TrustedPeers

Header = tuple[bytes, bytes]

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_FORWARDED = frozenset(
    {b"forwarded", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-port"}
)
_PREFIX = b"x-forwarded-prefix"
_OURS = frozenset({*_HOP_BY_HOP, *_FORWARDED, _PREFIX, b"expect"})
_BACK = frozenset({*_HOP_BY_HOP, b"date"})
"""The server in front gives every answer a date of its own."""

_LOCATIONS = (b"location", b"content-location")


@dataclass(frozen=True, slots=True)
class Outside:
    """How the app is reached from where the request came."""

    scheme: str
    host: str
    peers: str
    """For `X-Forwarded-For`."""

    prefix: str
    """The whole of it, also what proxies in front took off; empty for a request by host."""


def outside_of(scope: Scope, target: Target, trusted: TrustedPeers) -> Outside:
    """A trusted proxy's word counts, nobody else's."""
    values: dict[bytes, str] = {name: value.decode("latin-1") for name, value in scope["headers"]}
    peer = scope["client"][0] if scope.get("client") else ""
    said = values if peer in trusted else {}
    before = said.get(b"x-forwarded-for", "")
    outer = said.get(_PREFIX, "").rstrip("/")
    return Outside(
        scheme=said.get(b"x-forwarded-proto", "") or ("https" if scope["scheme"] in ("https", "wss") else "http"),
        host=said.get(b"x-forwarded-host", "") or values.get(b"host", ""),
        peers=f"{before}, {peer}" if before else peer,
        prefix=f"{outer}{target.prefix}" if target.prefix else "",
    )


def request_head(scope: Scope, target: Target, outside: Outside, *, upgrade: bool = False) -> bytes:
    """The whole head; with `upgrade` the connection is to become another protocol's."""
    gone = _named_by_connection(scope["headers"])
    lines = [scope.get("method", "GET").encode() + b" " + target.path + b" HTTP/1.1"]
    chunked = False
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            chunked = True
        elif name == b"host":
            lines.append(b"host: " + outside.host.encode("latin-1"))
        elif name not in _OURS and name not in gone:
            lines.append(name + b": " + value)
    lines += [
        b"x-forwarded-for: " + outside.peers.encode("latin-1"),
        b"x-forwarded-proto: " + outside.scheme.encode("latin-1"),
        b"x-forwarded-host: " + outside.host.encode("latin-1"),
    ]
    if outside.prefix:
        lines.append(b"x-forwarded-prefix: " + outside.prefix.encode("latin-1"))
    if upgrade:
        lines += [b"connection: Upgrade", b"upgrade: " + _value(scope["headers"], b"upgrade")]
    elif chunked:
        lines.append(b"transfer-encoding: chunked")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def response_headers(headers: Iterable[Header], outside: Outside, inside: str) -> list[Header]:
    """What the client gets. `inside` is the app's own address, `host:port`, which it is never shown."""
    headers = list(headers)
    gone = _named_by_connection(headers)
    back: list[Header] = []
    for name, value in headers:
        if name in _BACK or name in gone:
            continue
        if name in _LOCATIONS:
            value = location(value.decode("latin-1"), outside, inside).encode("latin-1")
        elif name == b"set-cookie" and outside.prefix:
            value = _cookie(value.decode("latin-1"), outside.prefix).encode("latin-1")
        back.append((name, value))
    return back


def location(value: str, outside: Outside, inside: str) -> str:
    """Absolute paths are the app's own and get the prefix; addresses of the app become those of the ingress."""
    if value.startswith("/") and not value.startswith("//"):
        return _below(value, outside.prefix)
    try:
        parts = urlsplit(value)
    except ValueError:
        return value
    if parts.scheme not in ("http", "https") or parts.netloc.lower() not in (inside, outside.host.lower()):
        return value
    path = _below(parts.path or "/", outside.prefix)
    return parts._replace(scheme=outside.scheme, netloc=outside.host, path=path).geturl()


def _below(path: str, prefix: str) -> str:
    """The app may know its prefix and have it there already."""
    return path if not prefix or path == prefix or path.startswith(f"{prefix}/") else f"{prefix}{path}"


def _cookie(value: str, prefix: str) -> str:
    parts = value.split(";")
    for place, part in enumerate(parts[1:], 1):
        name, _, path = part.partition("=")
        if name.strip().lower() == "path" and path.strip().startswith("/"):
            parts[place] = f"{name}={_below(path.strip(), prefix)}"
    return ";".join(parts)


def _named_by_connection(headers: Iterable[Header]) -> frozenset[bytes]:
    named: set[bytes] = set()
    for name, value in headers:
        if name == b"connection":
            named.update(token.strip().lower() for token in value.split(b","))
    return frozenset(named)


def _value(headers: Iterable[Header], wanted: bytes) -> bytes:
    return next((value for name, value in headers if name == wanted), b"")
