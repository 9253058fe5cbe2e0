"""Headers on their way to an app and back. Pure.

Order and repetitions are kept. What concerns one connection only stays behind (RFC 9110, 7.6.1); who asked, how and
under which prefix is added, since the app sees neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from starlette.types import Scope

from flyte_binary.app.ingress.outside import Outside
from flyte_binary.app.ingress.rewriting import location, set_cookie
from flyte_binary.app.ingress.target import Target

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
    {
        b"forwarded",
        b"x-forwarded-for",
        b"x-forwarded-proto",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-prefix",
    }
)
_OURS = frozenset({*_HOP_BY_HOP, *_FORWARDED, b"host", b"expect"})
_NEVER_OF_ONE_CONNECTION = frozenset({b"content-length", b"host"})
"""A request that calls its own length a matter of this connection would end elsewhere for the app than for us."""

_BACK = frozenset({*_HOP_BY_HOP, b"date"})
"""The server in front gives every answer a date of its own."""

_LOCATIONS = (b"location", b"content-location")
_WITHOUT_BODY = (204, 304)


def request_head(scope: Scope, target: Target, outside: Outside, *, upgrade: bool = False) -> bytes:
    """The whole head; with `upgrade` the connection is to become another protocol's."""
    headers: list[Header] = scope["headers"]
    gone = _named_by_connection(headers) - _NEVER_OF_ONE_CONNECTION
    lines = [
        b"%b %b HTTP/1.1" % (scope.get("method", "GET").encode(), target.path),
        b"host: " + outside.host.encode("latin-1"),
    ]
    lines += [b"%b: %b" % header for header in headers if not _is_ours(header[0]) and header[0] not in gone]
    lines.append(
        f"x-forwarded-for: {outside.peers}\r\nx-forwarded-proto: {outside.scheme}\r\n"
        f"x-forwarded-host: {outside.host}\r\nx-forwarded-port: {outside.port}".encode("latin-1")
    )
    if outside.prefix:
        lines.append(b"x-forwarded-prefix: " + outside.prefix.encode("latin-1"))
    if upgrade:
        lines += _switching(headers)
    else:
        lines += _framing_and_patience(headers)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _is_ours(name: bytes) -> bool:
    """Also as `X_Forwarded_For`, which is the same name to many an app (CGI's rule for environment variables)."""
    return name in _OURS or (b"_" in name and name.replace(b"_", b"-") in _OURS)


def _framing_and_patience(headers: Sequence[Header]) -> list[bytes]:
    lines: list[bytes] = []
    if body_kind(headers) == "chunked":
        lines.append(b"transfer-encoding: chunked")
    if awaits_continue(headers):
        lines.append(b"expect: 100-continue")
    return lines


def response_headers(status: int, headers: Sequence[Header], outside: Outside, inside: int) -> list[Header]:
    """What the client gets. `inside` is the app's own port on this machine, which it is never shown."""
    gone = _named_by_connection(headers)
    back: list[Header] = []
    for name, value in headers:
        if name in _BACK or name in gone or (name == b"content-length" and status in _WITHOUT_BODY):
            continue
        if name in _LOCATIONS:
            value = location(value.decode("latin-1"), outside, inside).encode("latin-1")
        elif name == b"set-cookie" and outside.prefix:
            value = set_cookie(value.decode("latin-1"), outside.prefix).encode("latin-1")
        back.append((name, value))
    return back


def switched_head(headers: Sequence[Header], outside: Outside, inside: int) -> bytes:
    """The head of an answer 101."""
    lines = [b"%b: %b" % header for header in response_headers(101, headers, outside, inside)]
    return b"\r\n".join([b"HTTP/1.1 101 Switching Protocols", *lines, *_switching(headers)]) + b"\r\n\r\n"


def body_kind(headers: Sequence[Header]) -> str:
    """`chunked`, `length`, or empty for a message without a body; `coded` for one in a coding that is not ours to
    pass on, since only the framing's end is known here (RFC 9112, 6.1)."""
    codings = [value.strip().lower() for name, value in headers if name == b"transfer-encoding"]
    if codings:
        return "chunked" if codings == [b"chunked"] else "coded"
    lengths = (value.strip() for name, value in headers if name == b"content-length")
    return "length" if next(lengths, b"0") != b"0" else ""


def awaits_continue(headers: Iterable[Header]) -> bool:
    """The client sends its body only when it is told to (RFC 9110, 10.1.1)."""
    return any(name == b"expect" and value.strip().lower() == b"100-continue" for name, value in headers)


def _named_by_connection(headers: Iterable[Header]) -> frozenset[bytes]:
    named: set[bytes] = set()
    for name, value in headers:
        if name == b"connection":
            named.update(token.strip().lower() for token in value.split(b","))
    return frozenset(named)


def _switching(headers: Iterable[Header]) -> list[bytes]:
    protocols = b", ".join(value for name, value in headers if name == b"upgrade")
    return [b"connection: Upgrade", b"upgrade: " + protocols]
