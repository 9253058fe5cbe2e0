"""Removing a file from the disk, with the folders that are empty then."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

from flyte_binary.storage.folders import opened_folder, refuse_link

_KEPT_LEVELS = 2
"""So many folders below a root stay although they are empty. These are project and domain: a task that starts
makes its run's folder in there at any moment, and would fail if the folder vanished between its two steps."""


def remove_file(root: str, segments: Sequence[str], name: str, *, sync: bool) -> None:
    """Raises `FileNotFoundError` if there is none of that name; a folder is none."""
    with opened_folder(root, segments, create=False) as folder:
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            refuse_link(name, folder)
            raise FileNotFoundError(errno.ENOENT, "not a regular file", name)
        os.unlink(name, dir_fd=folder)
        if sync:
            os.fsync(folder)
    _remove_empty_folders(root, segments)


def _remove_empty_folders(root: str, segments: Sequence[str]) -> None:
    for count in range(len(segments), _KEPT_LEVELS, -1):
        *above, name = segments[:count]
        try:
            with opened_folder(root, above, create=False) as folder:
                os.rmdir(name, dir_fd=folder)
        except OSError:  # not empty, or gone already
            return
