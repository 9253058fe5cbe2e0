"""How an app is reached from where a request came: scheme, host and prefix of its public address. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Scope

from flyte_binary.app.ingress.target import Target
from flyte_binary.rpc.identity import TrustedPeers, peer_of

_SECURE = ("https", "wss")
_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True)
class Outside:
    scheme: str
    host: str
    """With its port, as in the Host header."""

    port: str
    peers: str
    """For `X-Forwarded-For`."""

    prefix: str
    """The whole of it, also what proxies in front took off; empty for a request by host."""


def outside_of(scope: Scope, target: Target, trusted: TrustedPeers) -> Outside:
    """A trusted proxy's word counts, nobody else's. Of several proxies, the one that is nearest to the client."""
    peer = peer_of(scope)
    host = _joined(scope, b"host")
    scheme = "https" if scope["scheme"] in _SECURE else "http"
    if peer not in trusted:
        return Outside(scheme, host, _port(host, scheme), peer, target.prefix)
    said = _first(scope, b"x-forwarded-proto").lower()
    scheme = said if said in _PORTS else scheme
    host = _first(scope, b"x-forwarded-host") or host
    port = _first(scope, b"x-forwarded-port")
    before = _joined(scope, b"x-forwarded-for")
    return Outside(
        scheme,
        host,
        port if port.isdecimal() else _port(host, scheme),
        f"{before}, {peer}" if before else peer,
        _outer_prefix(scope) + target.prefix if target.prefix else "",
    )


def _outer_prefix(scope: Scope) -> str:
    prefix = _first(scope, b"x-forwarded-prefix").rstrip("/")
    return prefix if prefix.startswith("/") and not prefix.startswith("//") else ""


def _port(host: str, scheme: str) -> str:
    name, _, port = host.rpartition(":")
    return port if name and port.isdecimal() else _PORTS[scheme]


def _first(scope: Scope, wanted: bytes) -> str:
    return _joined(scope, wanted).partition(",")[0].strip()


def _joined(scope: Scope, wanted: bytes) -> str:
    return ", ".join(value.decode("latin-1") for name, value in scope["headers"] if name == wanted)
