"""Which object an upload becomes, decided from the names that the client sent."""

from __future__ import annotations

import base64
import secrets
import unicodedata

from flyte_binary.domain.errors import InvalidArgument

_SEGMENT_BYTES = 255
"""The longest name that common file systems take."""
_KEY_BYTES = 1024
"""The longest key that object stores take."""


def upload_key(*, project: str, domain: str, filename_root: str, filename: str, md5: bytes) -> str:
    """`<project>/<domain>/<filename_root or base32 of the MD5>/<filename>`.

    The root stands in the key as it was sent, because the SDK cuts the URI of a directory there. Without
    a file name, the content's MD5 (or chance, if that is not known) takes its place: the folder of an MD5
    cannot be a file too. Raises `InvalidArgument` if neither root nor MD5 is given or a name would lead
    out of its folder.
    """
    if md5 and len(md5) != 16:
        raise InvalidArgument(f"content_md5 has {len(md5)} bytes; an MD5 has 16")
    if not md5 and not filename_root:
        raise InvalidArgument("either filename_root or content_md5 must be provided")
    root = filename_root.removesuffix("/") or base64.b32encode(md5).decode().rstrip("=")
    name = filename or md5.hex() or secrets.token_hex(10)
    parts = {"project": project, "domain": domain, "filename_root": root, "filename": name}
    for field, value in parts.items():
        _check(field, value)
    key = "/".join(parts.values())
    if len(key.encode()) > _KEY_BYTES:
        raise InvalidArgument(f"filename_root and filename are too long: the key has more than {_KEY_BYTES} bytes")
    return key


def _check(field: str, value: str) -> None:
    if value.startswith("/"):
        raise InvalidArgument(f"{field} {value!r} is an absolute path; give a relative one")
    if any(unicodedata.category(character) == "Cc" for character in value):
        raise InvalidArgument(f"{field} {value!r} contains a control character")
    for segment in value.split("/"):
        if segment in ("", ".", ".."):
            raise InvalidArgument(f"{field} {value!r} contains an empty, '.' or '..' segment")
        if len(segment.encode()) > _SEGMENT_BYTES:
            raise InvalidArgument(f"{field} has a segment of more than {_SEGMENT_BYTES} bytes: {segment[:40]!r}…")
