"""Addresses in an app's answer, made those under which its client knows it. Pure.

An app that was told its prefix and knows how to use it has it there already; one that was not redirects to `/docs` and
sets cookies for `/`, both of which are the server's own below one origin.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from flyte_binary.app.ingress.outside import Outside
from flyte_binary.rpc.hosts import host_name

_SCHEMES = ("", "http", "https")


def location(value: str, outside: Outside, inside: int) -> str:
    """Of a `Location` header. Absolute paths are the app's own and get the prefix; addresses of the app, also of its
    port on this machine (`inside`), become those of the ingress."""
    if value.startswith("/") and not value.startswith("//"):
        return _below(value, outside.prefix)
    try:
        parts = urlsplit(value)
        own = parts.netloc.lower() == outside.host.lower() or _is_inside(parts.netloc, inside)
    except ValueError:
        return value
    if not parts.netloc or parts.scheme not in _SCHEMES or not own:
        return value
    path = _below(parts.path or "/", outside.prefix)
    return parts._replace(scheme=outside.scheme, netloc=outside.host, path=path).geturl()


def set_cookie(value: str, prefix: str) -> str:
    """The path of a cookie gets the prefix, but for `__Host-` cookies, which browsers take for `/` only."""
    parts = value.split(";")
    if parts[0].strip().startswith("__Host-"):
        return value
    for place, part in enumerate(parts[1:], 1):
        name, _, path = part.partition("=")
        if name.strip().lower() == "path" and path.strip().startswith("/"):
            parts[place] = f"{name}={_below(path.strip(), prefix)}"
    return ";".join(parts)


def _below(path: str, prefix: str) -> str:
    known = not prefix or path == prefix or path.startswith((f"{prefix}/", f"{prefix}?", f"{prefix}#"))
    return path if known else f"{prefix}{path}"


def _is_inside(netloc: str, port: int) -> bool:
    """The app's own port, by whatever name it calls this machine."""
    name = host_name(netloc)
    if not netloc.endswith(f":{port}"):
        return False
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
