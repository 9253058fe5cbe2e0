"""Which environments are removed: unused ones, and the longest unused of too many. What is decided is pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from flyte_binary.executor.local.environments.library import Library

JUST_USED = timedelta(minutes=10)
"""An environment that was chosen for an attempt in this time is kept, whether that attempt can be seen yet or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    digest: str
    folder: Path
    complete: bool
    """It is what its digest stands for: not left over by a build that was killed, or replaced by a newer one."""
    used_at: float
    """Seconds since 1970."""
    size_bytes: int


def to_remove(
    kept: Iterable[Kept], *, in_use: frozenset[Path], now: float, unused_for: timedelta, max_size_bytes: int
) -> list[Kept]:
    """Never what is in use, or was within the last ten minutes."""
    environments = sorted(kept, key=lambda one: one.used_at)
    total = sum(one.size_bytes for one in environments)
    removed: list[Kept] = []
    for one in environments:
        age = timedelta(seconds=now - one.used_at)
        if one.folder in in_use or age < JUST_USED:
            continue
        if not one.complete or age > unused_for or total > max_size_bytes:
            removed.append(one)
            total -= one.size_bytes
    return removed


def kept_in(library: Library) -> list[Kept]:
    """Blocking, and slow: every file is looked at."""
    found: list[Kept] = []
    for digest, folder in library.folders():
        ready = library.ready(digest)
        try:
            used_at = folder.stat().st_mtime
        except FileNotFoundError:  # another server of this folder removed it
            continue
        complete = ready is not None and ready.folder == folder
        found.append(Kept(digest=digest, folder=folder, complete=complete, used_at=used_at, size_bytes=_size(folder)))
    return found


def _size(folder: Path) -> int:
    """A file that is linked from the cache of `uv` counts as if it were alone."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except FileNotFoundError:
            continue
    return total
