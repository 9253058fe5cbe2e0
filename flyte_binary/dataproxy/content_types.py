"""The content type of a stored object, by the ending of its name."""

from __future__ import annotations

from pathlib import PurePosixPath

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".htm": "text/html; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".log": "text/plain; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".json": "application/json",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".svg": "image/svg+xml",
    # Not as a Content-Encoding: a client would unpack on the way what it is to store packed.
    ".gz": "application/gzip",
    ".tgz": "application/gzip",
}


def content_type(path: str) -> str:
    return _TYPES.get(PurePosixPath(path).suffix.lower(), "application/octet-stream")
