"""URIs of a cloud's store: which bucket and key one means, and whether this server may touch it.

The bucket is what each cloud calls bucket or container. For `abfs://container@account.dfs.core.windows.net/key` it
is the part before the `@`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flyte_binary.domain.errors import FlyteError, InvalidArgument, PermissionDenied
from flyte_binary.storage.uris import is_within

KEY_LIMIT_BYTES = 1024
"""The longest key that S3 and Google Cloud Storage take; Azure counts characters."""


class ObjectName(NamedTuple):
    bucket: str
    key: str
    """Empty for the whole bucket, where a folder is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """What the store of a cloud may be asked for. `base_uri` is `scheme://bucket`, or with a folder behind it."""

    schemes: tuple[str, ...]
    """All that mean this store, such as `abfs` and `abfss`."""
    base_uri: str
    also_allowed: Sequence[str] = field(default=())
    """Other buckets, by name, that may be read, written and signed for as a whole."""
    any_allowed: bool = False
    """Every bucket that the credentials reach."""
    account_host: str = ""
    """What may stand behind an `@` in the host part of a URI, if anything."""

    @property
    def base(self) -> ObjectName:
        return self._parse(self.base_uri)

    def covers(self, uri: str) -> bool:
        try:
            self.folder(uri)
        except FlyteError:
            return False
        return True

    def locate(self, uri: str) -> ObjectName:
        """Raises `InvalidArgument` for what names no object, `PermissionDenied` for one out of bounds."""
        name = self.folder(uri)
        if not name.key:
            raise InvalidArgument(f"{uri!r} names a bucket, not an object in it")
        return name

    def folder(self, uri: str) -> ObjectName:
        name = self._parse(uri)
        base = self.base
        if name.bucket == base.bucket and (not base.key or name.key == base.key or is_within(name.key, base.key)):
            return name
        if self.any_allowed or name.bucket in self.also_allowed:
            return name
        raise PermissionDenied(
            f"{uri} is outside of this server's store, {self.base_uri}; "
            "other buckets are allowed in storage.allowedContainers"
        )

    def _parse(self, uri: str) -> ObjectName:
        scheme, separator, rest = uri.partition("://")
        if not separator or scheme not in self.schemes:
            raise InvalidArgument(f"{uri!r} is no {self.schemes[0]}:// URI, and this server stores in {self.base_uri}")
        host, _, key = rest.partition("/")
        bucket, at, account = host.partition("@")
        if not bucket or (at and account != self.account_host):
            raise InvalidArgument(f"{uri!r} names no bucket of this server's store, {self.base_uri}")
        key = key.rstrip("/")
        if key:
            _check_key(key, uri)
        return ObjectName(bucket, key)


def _check_key(key: str, uri: str) -> None:
    if "\0" in key or any(segment in ("", ".", "..") for segment in key.split("/")):
        raise InvalidArgument(f"{uri!r} contains an empty, '.' or '..' segment or a NUL character")
    try:
        size = len(key.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{uri!r} is no valid text") from error
    if size > KEY_LIMIT_BYTES:
        raise InvalidArgument(f"{uri[:100]}... is too long a name: {size} bytes behind the bucket, the most is 1024")
