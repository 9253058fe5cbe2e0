"""URIs as text: joining them, and which of them are paths on the local disk."""

from __future__ import annotations

from flyte_binary.domain.errors import InvalidArgument

_FILE_SCHEMES = ("file://localhost/", "file:///")


def join(base: str, *segments: str) -> str:
    """`base` and the segments with one slash between them; empty segments are left out."""
    return "/".join([base.rstrip("/"), *(segment.strip("/") for segment in segments if segment.strip("/"))])


def local_path(uri: str) -> str:
    """The absolute path that `uri` means: a plain path or `file:///…`.

    Raises `InvalidArgument` for other schemes, relative paths, and paths that mean something else than
    they say (`..`, `.`, empty segments, NUL). A trailing slash is dropped. A plain path is taken
    literally, and so is what follows `file://`: the SDK does not percent-encode there.
    """
    path = uri
    for scheme in _FILE_SCHEMES:
        if uri.startswith(scheme):
            path = "/" + uri.removeprefix(scheme)
    if not path.startswith("/"):
        raise InvalidArgument(f"{uri!r} is neither an absolute path nor a file:/// URI, and this server stores on disk")
    path = path.rstrip("/")
    if "\0" in path or any(segment in ("", ".", "..") for segment in path.split("/")[1:]):
        raise InvalidArgument(f"{uri!r} contains an empty, '.' or '..' segment or a NUL character")
    return path


def is_within(path: str, root: str) -> bool:
    """Whether `path` lies below `root`, by their text; both as `local_path` returns them."""
    return path.startswith(f"{root}/")
