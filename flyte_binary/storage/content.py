"""What every cloud's store keeps beside an object, and how much of one a read asks for."""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path

from flyte_binary.domain.errors import ResourceExhausted

MD5_METADATA = "flyteContentMD5"
"""Name of the object metadata that holds the MD5 of the content in base64, as the reference backend has it. Stores
give names of metadata back in lower case, or in any."""


class TooLarge(Exception):
    """A read that was not begun."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes

    def of(self, uri: str, limit_bytes: int) -> ResourceExhausted:
        return ResourceExhausted(f"{uri} has {self.size_bytes} bytes to read, more than the limit of {limit_bytes}")


def md5_of(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def md5_of_file(path: Path) -> bytes:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, lambda: hashlib.md5(usedforsecurity=False)).digest()


def base64_of(md5: bytes) -> str:
    return base64.b64encode(md5).decode()


def md5_from(text: str | None) -> bytes | None:
    """The 16 bytes, or None for what is no MD5: anyone who may write an object chooses its metadata."""
    try:
        md5 = base64.b64decode(text or "", validate=True)
    except binascii.Error:
        return None
    return md5 if len(md5) == 16 else None


def md5_in(metadata: dict[str, str] | None) -> bytes | None:
    values = {name.lower(): value for name, value in (metadata or {}).items()}
    return md5_from(values.get(MD5_METADATA.lower()))
