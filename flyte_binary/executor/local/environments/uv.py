"""Where the program `uv` is, and what of the server's own environment a build gets to see."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Mapping
from pathlib import Path

_PREFIXES = ("UV_", "SSL_CERT_", "SSH_", "GIT_", "XDG_", "POETRY_")
_NAMES = frozenset(
    {"HOME", "PATH", "TMPDIR", "NETRC", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CC", "CXX", "CFLAGS", "LDFLAGS"}
)
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
_INDEXES = {"PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_EXTRA_INDEX_URL": "UV_INDEX"}
_CHOSEN = {"UV_DEFAULT_INDEX": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"), "UV_INDEX": ("UV_INDEX", "UV_EXTRA_INDEX_URL")}


def find_uv(configured: Path | None) -> Path | None:
    """As configured, else that of the Python package `uv` beside the server, else the one on PATH."""
    if configured is not None:
        return configured
    try:
        found = Path(importlib.import_module("uv").find_uv_bin())
    except (ImportError, AttributeError, FileNotFoundError):
        on_path = shutil.which("uv")
        return Path(on_path) if on_path else None
    return found


def build_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Which index to use and how to get there: `uv` behaves as it does for the user who started the server. The
    indexes of pip count where `uv` has none of its own."""
    kept = {
        name: value
        for name, value in environ.items()
        if name.startswith(_PREFIXES) or name in _NAMES or name.lower() in _PROXIES
    }
    for theirs, ours in _INDEXES.items():
        if theirs in environ and not any(name in environ for name in _CHOSEN[ours]):
            kept[ours] = environ[theirs]
    return kept
