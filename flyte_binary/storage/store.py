"""The object store as the rest of the server sees it: five verbs over URIs.

A URI is what stands in protobuf messages: a plain absolute path on the local disk, `s3://`, `gs://`
or `abfs://` elsewhere. Every implementation turns its own kind of "missing" into `NotFound`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol


class Verb(Enum):
    GET = "GET"
    PUT = "PUT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInfo:
    size_bytes: int
    modified_at: datetime
    content_md5: bytes | None = None
    """The 16 bytes of the MD5 that the object was uploaded with, where the store kept it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUrl:
    url: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """What a client must send along with a PUT, verbatim."""
    expires_at: datetime


class ObjectStore(Protocol):
    @property
    def base_uri(self) -> str:
        """Where all that the server itself writes lives, without a trailing slash."""
        ...

    async def put(self, uri: str, data: bytes) -> None:
        """Write the whole object, atomically; a second call replaces it."""
        ...

    async def get(self, uri: str, *, limit_bytes: int) -> bytes:
        """Raises `NotFound`, and `ResourceExhausted` if the object is larger than `limit_bytes`."""
        ...

    async def stat(self, uri: str) -> ObjectInfo | None: ...

    async def sign(
        self, uri: str, verb: Verb, *, lifetime: timedelta, origin: str, md5: bytes | None = None
    ) -> SignedUrl:
        """`origin` is the scheme and host under which the asking client reached this server, for
        stores whose signed URLs lead to the server itself."""
        ...
