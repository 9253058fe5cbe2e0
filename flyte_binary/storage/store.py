"""The object store as the rest of the server sees it: a few verbs over URIs.

A URI is what stands in protobuf messages: a plain absolute path on the local disk, `s3://`, `gs://`
or `abfs://` elsewhere. Every implementation turns its own kind of "missing" into `NotFound`, and
refuses with `PermissionDenied` what `covers` says no to: URIs arrive in requests and task specs, so
each of them may be somebody's attempt to make the server read or write a file of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Protocol


class Verb(Enum):
    GET = "GET"
    PUT = "PUT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInfo:
    size_bytes: int
    modified_at: datetime
    content_md5: bytes | None = None
    """The 16 bytes of the MD5 of the content, where it was asked for and the store knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUrl:
    url: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """What a client must send along with a PUT, verbatim."""
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedObject:
    uri: str
    size_bytes: int
    modified_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPage:
    objects: Sequence[ListedObject]
    next_token: str = ""
    """For the call that goes on from here; empty after the last page."""


class ObjectStore(Protocol):
    @property
    def base_uri(self) -> str:
        """Where all that the server itself writes lives, without a trailing slash."""
        ...

    def covers(self, uri: str) -> bool:
        """Whether the store may be asked for `uri` at all; decided by its text, without I/O."""
        ...

    async def put(self, uri: str, data: bytes) -> None:
        """Write the whole object, atomically and to stay; a second call replaces it.

        Raises `ResourceExhausted` if there is no room, `InvalidArgument` for a name that the store
        cannot have, `FailedPrecondition` if the name is taken by a folder.
        """
        ...

    async def put_file(self, uri: str, source: Path) -> None:
        """The same with the content of a local file, for objects that are too large for the memory."""
        ...

    async def get(self, uri: str, *, limit_bytes: int, offset: int = 0, length: int | None = None) -> bytes:
        """The object, or `length` bytes of it from `offset` (fewer at its end).

        Raises `NotFound`, and `ResourceExhausted` if what was asked for is larger than `limit_bytes`.
        """
        ...

    async def stat(self, uri: str, *, with_md5: bool = False) -> ObjectInfo | None:
        """`with_md5` may cost a read of the whole object."""
        ...

    async def sign(
        self, uri: str, verb: Verb, *, lifetime: timedelta, origin: str, md5: bytes | None = None
    ) -> SignedUrl:
        """`origin` is the scheme and host under which the asking client reached this server, for
        stores whose signed URLs lead to the server itself. The object need not exist."""
        ...

    async def list(self, uri: str, *, token: str = "", limit: int = 1000) -> ObjectPage:
        """The objects below the folder `uri`, at any depth, in the order of their names' bytes.

        A page has at most `limit` objects, at most 1000, and may have fewer although there are more. `token`
        is the `next_token` of the page before, and stays good while objects come and go. A folder that
        does not exist is empty.
        """
        ...

    async def delete(self, uris: Sequence[str]) -> None:
        """Remove these objects, as many as there are; one that is not there is removed already.

        An error leaves some of them removed; calling again goes on.
        """
        ...
