"""An app that is served below a path knows so.

The ingress takes `/apps/<project>/<domain>/<name>` off the path of a request and says so in `X-Forwarded-Prefix`. What
a server of uvicorn's gets is then, request by request, what ASGI calls the root path, so that the links and the
documentation pages of FastAPI and its like point to where they can be found. Other servers have the header.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Awaitable, Callable, Sequence
from types import ModuleType
from typing import Any

_MODULE = "uvicorn.config"
_HEADER = b"x-forwarded-prefix"

_App = Callable[[Any, Any, Any], Awaitable[None]]  # Any: an ASGI scope, and its two channels


def install() -> None:
    """Once in a process that runs one of the SDK's programs, before the user's own code is loaded."""
    if _MODULE in sys.modules:
        _change(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds what Python's own finder does, and has it changed right after it was loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _change(module)

            spec.loader.exec_module = exec_module
        return spec


def _change(module: ModuleType) -> None:
    """A uvicorn that is built differently stays as it is."""
    config: Any = getattr(module, "Config", None)  # Any: uvicorn.Config
    load: Callable[[Any], None] | None = getattr(config, "load", None)
    if load is None:
        return

    def load_with_prefix(self: Any) -> None:  # Any: as above
        load(self)
        app: _App | None = getattr(self, "loaded_app", None)
        if app is not None and not getattr(self, "root_path", ""):
            self.loaded_app = _below_prefix(app)

    config.load = load_with_prefix


def _below_prefix(app: _App) -> _App:
    async def below_prefix(scope: Any, receive: Any, send: Any) -> None:  # Any: as above
        prefix = "" if scope["type"] == "lifespan" else _prefix(scope["headers"])
        if prefix:
            raw = scope.get("raw_path")
            scope = {**scope, "root_path": prefix, "path": prefix + scope["path"]}
            if raw is not None:
                scope["raw_path"] = prefix.encode() + raw
        await app(scope, receive, send)

    return below_prefix


def _prefix(headers: Sequence[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if name == _HEADER:
            return value.decode("latin-1").rstrip("/")
    return ""
