"""The files below a folder of the disk, in the order in which a cloud's store would list them."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Generator
from typing import NamedTuple

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FoundFile(NamedTuple):
    name: str
    """Relative to the folder that was listed."""
    size_bytes: int
    modified: float
    """Unix seconds."""


def list_below(folder: int, *, after: str = "", without: Collection[str] = ()) -> Generator[FoundFile]:
    """All regular files at any depth whose names are greater than `after`, by their bytes; follows no link.

    `folder` is an open folder; `without` names entries of it to leave out. What vanishes meanwhile is left out.
    """
    yield from _walk(folder, "", os.fsencode(after), without)


def _walk(folder: int, prefix: str, after: bytes, without: Collection[str]) -> Generator[FoundFile]:
    for entry, is_folder in _sorted_entries(folder):
        name = prefix + entry
        if entry in without:
            continue
        if not is_folder:
            if os.fsencode(name) > after and (found := _file(folder, entry, name)):
                yield found
        elif os.fsencode(f"{name}/") > after or after.startswith(os.fsencode(f"{name}/")):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                below = os.open(entry, _FOLDER, dir_fd=folder)
                try:
                    yield from _walk(below, f"{name}/", after, ())
                finally:
                    os.close(below)


def _sorted_entries(folder: int) -> list[tuple[str, bool]]:
    """A folder sorts as if its name ended in a slash: that is how the names of what is in it go on."""
    with os.scandir(folder) as entries:
        kinds = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    return sorted(kinds, key=lambda kind: os.fsencode(f"{kind[0]}/" if kind[1] else kind[0]))


def _file(folder: int, entry: str, name: str) -> FoundFile | None:
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(entry, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(found.st_mode):
            return FoundFile(name, found.st_size, found.st_mtime)
    return None
