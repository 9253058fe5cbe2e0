"""An object store in memory, for tests of what stands above it. Passes the contract of `storage/store.py`."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flyte_binary.domain.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
)
from flyte_binary.storage.store import ListedObject, ObjectInfo, ObjectPage, SignedUrl, Verb
from flyte_binary.storage.uris import is_within, local_path


class MemoryStore:
    def __init__(self, base_uri: str = "/store", *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._base_uri = base_uri
        self._now = now
        self.objects: dict[str, bytes] = {}
        self.bytes_read = 0
        """Of all `get`s together, to see what a reader fetches."""

    @property
    def base_uri(self) -> str:
        return self._base_uri

    def covers(self, uri: str) -> bool:
        try:
            path = local_path(uri)
        except InvalidArgument:
            return False
        return path == self._base_uri or is_within(path, self._base_uri)

    async def put(self, uri: str, data: bytes) -> None:
        key = self._key(uri)
        for other in self.objects:
            if is_within(other, key) or is_within(key, other):
                raise FailedPrecondition(f"cannot write {uri}: {other} is in the way")
        self.objects[key] = bytes(data)

    async def put_file(self, uri: str, source: Path) -> None:
        self._key(uri)
        await self.put(uri, await asyncio.to_thread(source.read_bytes))

    async def get(self, uri: str, *, limit_bytes: int, offset: int = 0, length: int | None = None) -> bytes:
        data = self.objects.get(self._key(uri))
        if data is None:
            raise NotFound(f"there is no object {uri}")
        part = data[offset:] if length is None else data[offset : offset + length]
        if len(part) > limit_bytes:
            raise ResourceExhausted(f"{uri} has {len(part)} bytes to read, more than the limit of {limit_bytes}")
        self.bytes_read += len(part)
        return part

    async def stat(self, uri: str, *, with_md5: bool = False) -> ObjectInfo | None:
        data = self.objects.get(self._key(uri))
        if data is None:
            return None
        md5 = hashlib.md5(data, usedforsecurity=False).digest() if with_md5 else None
        return ObjectInfo(size_bytes=len(data), modified_at=self._now(), content_md5=md5)

    async def sign(
        self, uri: str, verb: Verb, *, lifetime: timedelta, origin: str, md5: bytes | None = None
    ) -> SignedUrl:
        key = self._key(uri)
        return SignedUrl(url=f"{origin}/memory{key}?verb={verb.value}", expires_at=self._now() + lifetime)

    async def list(self, uri: str, *, token: str = "", limit: int = 1000) -> ObjectPage:
        folder = local_path(uri)
        if folder != self._base_uri:
            self._key(uri)
        below = sorted((key for key in self.objects if is_within(key, folder) and key > token), key=os.fsencode)
        page = [
            ListedObject(uri=key, size_bytes=len(self.objects[key]), modified_at=self._now()) for key in below[:limit]
        ]
        return ObjectPage(objects=page, next_token=page[-1].uri if len(below) > limit else "")

    async def delete(self, uris: Sequence[str]) -> None:
        for key in [self._key(uri) for uri in uris]:
            self.objects.pop(key, None)

    def _key(self, uri: str) -> str:
        path = local_path(uri)
        if not is_within(path, self._base_uri):
            raise PermissionDenied(f"{uri} is outside the store")
        return path
