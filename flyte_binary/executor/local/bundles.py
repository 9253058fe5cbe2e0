"""Code bundles: fetched and unpacked once a version, copied into each attempt's working folder.

The SDK takes a bundle whose marker stands in the folder for downloaded and unpacked
(`.<archive>.extracted` for a tarball, `.<pickle>.done` for a pickle), so it does neither again.
What is in the cache is read-only and never shared by link: user code may write over its own copy.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import uuid4

from flyte_binary.domain.errors import FlyteError, NotFound, ResourceExhausted, Unavailable
from flyte_binary.executor.local.folders import remove_tree
from flyte_binary.executor.local.program.platforms import Platform
from flyte_binary.executor.local.settings import LocalSettings
from flyte_binary.executor.local.unpack import InvalidBundle, unpack
from flyte_binary.storage.store import ObjectInfo

T = TypeVar("T")

_PICKLE = ".pkl.gz"


class BundleStore(Protocol):
    """The part of an object store that is needed here."""

    async def get(self, uri: str, *, limit_bytes: int) -> bytes: ...

    async def stat(self, uri: str) -> ObjectInfo | None: ...


class Threads(Protocol):
    async def run(self, function: Callable[[], T], /) -> T: ...


@dataclass(frozen=True, slots=True)
class _Item:
    path: str
    """Relative."""
    kind: str
    """`folder`, `file` or `link`."""
    mode: int = 0
    modified_ns: int = 0
    leads_to: str = ""


@dataclass(slots=True)
class _Entry:
    folder: Path
    size_bytes: int
    items: list[_Item]
    users: int = 0


class Bundles:
    def __init__(self, settings: LocalSettings, store: BundleStore, platform: Platform, threads: Threads) -> None:
        self._settings = settings
        self._store = store
        self._platform = platform
        self._threads = threads
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._fetching: dict[str, asyncio.Lock] = {}

    async def prepare(self) -> None:
        """The cache of an earlier server is found again; what it left half-done goes."""
        await self._threads.run(self._load)

    async def place(self, uri: str, argv: Sequence[str], work: Path) -> None:
        """Put the bundle where the SDK would. Raises `InvalidBundle`, and `Unavailable` if that may pass."""
        if not uri:
            return
        async with self._held(uri) as entry:
            if not _into_work(argv):
                return  # to a folder of the user's choice: checked, but left to the SDK
            archive = uri.rpartition("/")[2]
            marker = work / f".{archive}.{'done' if uri.endswith(_PICKLE) else 'extracted'}"
            try:
                await self._threads.run(lambda: self._copy(entry, work, marker))
            except FileNotFoundError as error:  # someone cleaned up below the server's feet
                self._entries = OrderedDict(item for item in self._entries.items() if item[1] is not entry)
                raise Unavailable(f"the unpacked code bundle is gone ({error}); it will be unpacked again") from error

    @asynccontextmanager
    async def _held(self, uri: str) -> AsyncGenerator[_Entry]:
        """The unpacked bundle, not evicted meanwhile. Several who need it first wait for one."""
        info = await self._stat(uri)
        key = _key(uri, info)
        async with self._fetching.setdefault(key, asyncio.Lock()):
            entry = self._entries.get(key)
            if entry is None:
                entry = await self._fetch(uri, key)
                self._entries[key] = entry
            entry.users += 1
        self._fetching.pop(key, None)
        self._entries.move_to_end(key)
        try:
            yield entry
        finally:
            entry.users -= 1
            await self._evict()

    async def _stat(self, uri: str) -> ObjectInfo:
        try:
            info = await self._store.stat(uri)
        except Unavailable:
            raise
        except FlyteError as error:
            raise InvalidBundle(f"the code bundle {uri} cannot be read: {error.message}") from error
        if info is None:
            raise InvalidBundle(f"the code bundle {uri} is not in the object store; deploy or run the task again")
        return info

    async def _fetch(self, uri: str, key: str) -> _Entry:
        try:
            data = await self._store.get(uri, limit_bytes=self._settings.bundle_archive_limit_bytes)
        except (NotFound, ResourceExhausted) as error:
            raise InvalidBundle(f"the code bundle {uri} cannot be used: {error.message}") from error
        return await self._threads.run(lambda: self._unpack(uri, key, data))

    def _unpack(self, uri: str, key: str, data: bytes) -> _Entry:
        scratch = self._settings.bundles / f".{uuid4().hex}"
        try:
            content = scratch / "content"
            content.mkdir(parents=True)
            archive = scratch / uri.rpartition("/")[2]
            archive.write_bytes(data)
            if uri.endswith(_PICKLE):
                archive.rename(content / archive.name)
            else:
                unpack(archive, content, limit_bytes=self._settings.bundle_limit_bytes, name=uri)
            items = list(_items(content))
            _protect(content, items)
            target = self._settings.bundles / key
            remove_tree(target)
            content.rename(target)
        finally:
            remove_tree(scratch)
        return _Entry(folder=target, size_bytes=_size(target, items), items=items)

    def _copy(self, entry: _Entry, work: Path, marker: Path) -> None:
        for item in entry.items:
            place = work / item.path
            if item.kind == "folder":
                place.mkdir(exist_ok=True)
            elif item.kind == "link":
                place.symlink_to(item.leads_to)
            else:
                self._platform.copy_file(f"{entry.folder}/{item.path}", str(place))
                place.chmod(item.mode)
                os.utime(place, ns=(item.modified_ns, item.modified_ns))
        marker.touch()
        os.utime(entry.folder)  # when it was last used, for the next server

    async def _evict(self) -> None:
        """The least recently used, but for those in use."""
        total = sum(entry.size_bytes for entry in self._entries.values())
        for key, entry in list(self._entries.items()):
            if total <= self._settings.bundle_cache_bytes:
                return
            if entry.users or key in self._fetching:
                continue
            del self._entries[key]
            total -= entry.size_bytes
            folder = entry.folder
            await self._threads.run(lambda folder=folder: remove_tree(folder))

    def _load(self) -> None:
        self._settings.bundles.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = sorted(self._settings.bundles.iterdir(), key=lambda path: path.stat().st_mtime)
        for folder in found:
            if folder.name.startswith("."):
                remove_tree(folder)
                continue
            items = list(_items(folder))
            self._entries[folder.name] = _Entry(folder=folder, size_bytes=_size(folder, items), items=items)


def _key(uri: str, info: ObjectInfo) -> str:
    version = f"{uri}\0{info.size_bytes}\0{info.modified_at.isoformat()}"
    return hashlib.sha256(version.encode()).hexdigest()[:40]


def _into_work(argv: Sequence[str]) -> bool:
    """Whether `--dest` is the working folder, as it is unless the user chose another."""
    for option, value in pairwise(argv):
        if option == "--dest":
            return os.path.normpath(value) == "."
    return False


def _items(folder: Path, prefix: str = "") -> Iterator[_Item]:
    """Folders before what is in them."""
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        path = f"{prefix}{entry.name}"
        if entry.is_symlink():
            yield _Item(path, "link", leads_to=str(Path(entry.path).readlink()))
        elif entry.is_dir():
            yield _Item(path, "folder")
            yield from _items(Path(entry.path), f"{path}/")
        else:
            found = entry.stat()
            yield _Item(path, "file", (found.st_mode & 0o777) | 0o600, found.st_mtime_ns)


def _protect(folder: Path, items: Sequence[_Item]) -> None:
    for item in items:
        if item.kind == "file":
            (folder / item.path).chmod(item.mode & 0o555)


def _size(folder: Path, items: Sequence[_Item]) -> int:
    return sum((folder / item.path).stat().st_size for item in items if item.kind == "file")
