"""Which app a request is for. Pure.

By path, `/apps/<project>/<domain>/<name>/...`, or by the host `<label>.localhost`. The rest of the path stays as it
came, percent-encoding and all: what it means is the app's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from starlette.types import Scope

from flyte_binary.domain.ids import AppId
from flyte_binary.rpc.hosts import host_name

PREFIX = b"/apps/"
_HOST_SUFFIX = ".localhost"

Resolve = Callable[[str], AppId | None]


@dataclass(frozen=True, slots=True)
class Target:
    app: AppId
    prefix: str
    """What the ingress takes off the path, without a slash at the end; empty for a request by host."""

    path: bytes
    """Of the app's own, with its query."""

    needs_slash: bool = False
    """The prefix alone was asked for: relative links of the page would lead elsewhere."""


def target_of(scope: Scope, resolve: Resolve) -> Target | None:
    """None for what is not for an app."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    suffix = b"?" + query if query else b""
    host = _host_of(scope)
    if host.endswith(_HOST_SUFFIX):
        app = resolve(host.removesuffix(_HOST_SUFFIX))
        if app is not None:
            return Target(app, "", raw + suffix)
    if not raw.startswith(PREFIX):
        return None
    parts = raw.split(b"/", 5)
    if len(parts) < 5 or not all(parts[2:5]):
        return None
    project, domain, name = (unquote(part.decode("latin-1")) for part in parts[2:5])
    prefix = "/apps/" + "/".join(quote(part, safe="") for part in (project, domain, name))
    rest = parts[5] if len(parts) == 6 else b""
    return Target(AppId(project, domain, name), prefix, b"/" + rest + suffix, needs_slash=len(parts) == 5)


def _host_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"host":
            return host_name(value.decode("latin-1"))
    return ""
