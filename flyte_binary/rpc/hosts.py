"""Checks the Host header of every request, also on loopback.

A web page can make a browser send requests to any address by giving its own domain that address (DNS rebinding). The
request then carries the page's name as its host. An IP address as host cannot come about that way.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from flyte_binary.rpc.boundary import answer_error
from flyte_binary.rpc.errors import WireError


class HostCheck:
    """Lets `localhost`, names under it and IP addresses through, and the names that are configured:
    `flyte.example.com`, `*.example.com` for all names under it, or `*` for all."""

    def __init__(self, app: ASGIApp, allowed: Sequence[str] = ()) -> None:
        names = [name.lower().removesuffix(".") for name in allowed]
        self._app = app
        self._names = {"localhost", *names}
        self._suffixes = (".localhost", *(name[1:] for name in names if name.startswith("*.")))
        self._all = "*" in names
        self._known: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        values = [value for name, value in scope["headers"] if name == b"host"]
        if len(values) == 1 and (values[0] in self._known or self._allows(values[0])):
            await self._app(scope, receive, send)
            return
        await answer_error(send, _refusal(values))

    def _allows(self, header: bytes) -> bool:
        name = host_name(header.decode("latin-1"))
        if not (self._all or name in self._names or name.endswith(self._suffixes) or _is_address(name)):
            return False
        if len(self._known) < 1000:
            self._known.add(header)
        return True


def host_name(host: str) -> str:
    """A Host header without its port, in lower case: `[::1]:80` -> `::1`, `Example.com.:80` -> `example.com`."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _refusal(values: Sequence[bytes]) -> WireError:
    given = values[0].decode("latin-1") if len(values) == 1 else ""
    if not given:
        return WireError("invalid_argument", "The request needs exactly one Host header.")
    return WireError(
        "permission_denied",
        f"This server is not to be reached as {host_name(given)!r}. If it should be, add the name to"
        " runs.server.allowedHosts.",
    )
