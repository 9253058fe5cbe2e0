"""Which app a request is for. Pure.

By path, `/apps/<project>/<domain>/<name>/...`, or by the host `<label>.localhost`. The rest of the path stays as it
came, percent-encoding, dot segments and all: what it means is the app's business.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

from starlette.types import Scope

from flyte_binary.domain.ids import AppId
from flyte_binary.rpc.hosts import host_name

PREFIX = b"/apps/"
_HOST_SUFFIX = ".localhost"

Resolve = Callable[[str], AppId | None]


class NotAnApp(Exception):
    """The request is for an app, but names none; the message says what it does name."""


@dataclass(frozen=True, slots=True)
class Target:
    app: AppId
    prefix: str
    """What the ingress takes off the path, without a slash at the end; empty for a request by host."""

    path: bytes
    """Of the app's own, with its query."""

    needs_slash: bool = False
    """The prefix alone was asked for: relative links of the page would lead elsewhere."""


def target_of(scope: Scope, resolve: Resolve, own_hosts: Container[str] = ()) -> Target | None:
    """None for what is the server's own. Raises `NotAnApp`.

    Hosts below `localhost` are for apps alone, but for `own_hosts`: a page that an app has left in a browser would
    share its origin with the server otherwise, as soon as the app is deleted.
    """
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    suffix = b"?" + query if query else b""
    host = _host_of(scope)
    if host.endswith(_HOST_SUFFIX) and host not in own_hosts:
        app = resolve(host.removesuffix(_HOST_SUFFIX))
        if app is None:
            raise NotAnApp(f"There is no app at {host}.")
        return Target(app, "", raw + suffix)
    if not raw.startswith(PREFIX):
        if raw == PREFIX[:-1]:
            raise NotAnApp(_HOW)
        return None
    return _by_path(raw, suffix)


_HOW = "Apps are found below /apps/<project>/<domain>/<name>/."


def _by_path(raw: bytes, suffix: bytes) -> Target:
    parts = raw.split(b"/", 5)
    if len(parts) < 5 or not all(parts[2:5]):
        raise NotAnApp(_HOW)
    app, prefix = _app_of(*parts[2:5])
    rest = parts[5] if len(parts) == 6 else b""
    return Target(app, prefix, b"/" + rest + suffix, needs_slash=len(parts) == 5)


@lru_cache(maxsize=1024)
def _app_of(*segments: bytes) -> tuple[AppId, str]:
    """With its path, as this server writes it."""
    app = AppId(*(unquote(segment.decode("latin-1")) for segment in segments))
    return app, "/apps/" + "/".join(map(quoted, (app.project, app.domain, app.name)))


def quoted(segment: str) -> str:
    """As a segment of a path that is none but itself, whatever a client has written."""
    return quote(segment, safe="")


def _host_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"host":
            return host_name(value.decode("latin-1"))
    return ""
