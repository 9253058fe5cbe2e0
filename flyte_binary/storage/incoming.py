"""A file on its way into the store: written beside the objects, flushed, then renamed into its place."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Sequence

from flyte_binary.storage.folders import opened_folder

INCOMING = ".incoming"
"""The folder below a root where unfinished files lie. On the same file system, so that a rename is atomic."""

ABANDONED_SECONDS = 15 * 60
"""A file in it that was not written to for so long belongs to a server that is gone: uploads that stand
still are given up long before."""

_COMMIT_ATTEMPTS = 5


class Incoming:
    """Blocking; to be used in a thread, and from one at a time, but `discard` may come from any.

    The lock is there for that: without it, giving up an upload could close the descriptor under a write
    that still runs in the pool, and the write would land in whatever file has got the number by then.
    """

    def __init__(self, root: str, *, sync: bool) -> None:
        self._root = root
        self._sync = sync
        self._name = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._md5 = hashlib.md5(usedforsecurity=False)
        self.size_bytes = 0
        with opened_folder(root, [INCOMING], create=True) as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._descriptor = os.open(self._name, flags, 0o644, dir_fd=folder)

    @property
    def md5(self) -> bytes:
        """Of what was written up to now."""
        return self._md5.digest()

    def write(self, data: bytes) -> None:
        with self._lock:
            if self._descriptor < 0:
                return
            self._md5.update(data)
            self.size_bytes += len(data)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    def commit(self, segments: Sequence[str], name: str) -> None:
        """Make it the object `segments…/name` of the root, in place of one that may be there."""
        with self._lock:
            if self._sync:
                os.fsync(self._descriptor)
            for attempt in range(_COMMIT_ATTEMPTS):
                try:
                    return self._rename(segments, name)
                except FileNotFoundError:  # the folder was empty, and was removed just then
                    if attempt == _COMMIT_ATTEMPTS - 1:
                        raise

    def _rename(self, segments: Sequence[str], name: str) -> None:
        with (
            opened_folder(self._root, [INCOMING], create=False) as source,
            opened_folder(self._root, segments, create=True, sync=self._sync) as target,
        ):
            os.rename(self._name, name, src_dir_fd=source, dst_dir_fd=target)
            self._close()
            if self._sync:
                os.fsync(target)

    def discard(self) -> None:
        """Leave nothing behind; nothing happens after a `commit` or a second time."""
        with self._lock:
            if self._descriptor < 0:
                return
            self._close()
            with (
                contextlib.suppress(FileNotFoundError),
                opened_folder(self._root, [INCOMING], create=False) as folder,
            ):
                os.unlink(self._name, dir_fd=folder)

    def _close(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1


def sweep(root: str) -> int:
    """Remove what servers that are gone left unfinished; returns how many files that were."""
    removed = 0
    with opened_folder(root, [INCOMING], create=True) as folder:
        for name in os.listdir(folder):  # noqa: PTH208 -- of an open folder, which pathlib cannot list
            with contextlib.suppress(FileNotFoundError):
                if os.stat(name, dir_fd=folder).st_mtime < time.time() - ABANDONED_SECONDS:
                    os.unlink(name, dir_fd=folder)
                    removed += 1
    return removed
