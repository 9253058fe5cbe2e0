"""ASGI scopes as uvicorn makes them."""

from __future__ import annotations

from typing import Any


def scope_of(
    path: str = "/apps/p/d/n/",
    *,
    method: str = "GET",
    query: str = "",
    host: str = "localhost:30080",
    peer: str = "127.0.0.1",
    headers: list[tuple[str, str]] | None = None,
) -> dict[str, Any]:
    lines = [("host", host), *(headers or [])]
    return {
        "type": "http",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "client": (peer, 50000),
        "headers": [(name.encode(), value.encode()) for name, value in lines],
    }
