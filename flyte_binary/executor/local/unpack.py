"""Unpacking a code bundle that anyone may have uploaded. Blocking.

Written out by hand rather than with `tarfile`'s extraction filters: Python 3.11.2, which Debian 12
ships, does not have them. Refused are names and links that lead outside, devices, and more bytes or
entries than the limits; owners and the bits that lend rights are not kept.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

_MAX_ENTRIES = 200_000
_COPY_BYTES = 1024 * 1024


class InvalidBundle(Exception):
    """The bundle can never be used; the text is a sentence for the user."""


def unpack(archive: Path, target: Path, *, limit_bytes: int, name: str) -> None:
    """Into the empty folder `target`. `name` stands in the errors. Raises `InvalidBundle`."""
    try:
        with tarfile.open(archive, "r:*") as tar:
            _Unpacking(tar, target, limit_bytes, name).run()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise InvalidBundle(f"the code bundle {name} is not a tar archive ({error})") from error
    except OSError as error:
        if error.errno is None or isinstance(error, (shutil.Error, UnicodeError)):  # gzip's and lzma's own complaints
            raise InvalidBundle(f"the code bundle {name} is damaged ({error})") from error
        raise


class _Unpacking:
    def __init__(self, tar: tarfile.TarFile, target: Path, limit_bytes: int, name: str) -> None:
        self._tar = tar
        self._target = target
        self._limit = limit_bytes
        self._left = limit_bytes
        self._name = name

    def run(self) -> None:
        for count, member in enumerate(self._tar):
            if count >= _MAX_ENTRIES:
                raise InvalidBundle(f"the code bundle {self._name} has more than {_MAX_ENTRIES} entries")
            path = self._place(member.name)
            if path == self._target:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            self._refuse_detour(path, member.name)
            self._make(member, path)

    def _make(self, member: tarfile.TarInfo, path: Path) -> None:
        if member.isdir():
            path.mkdir(exist_ok=True)
        elif member.issym():
            self._link(member, path)
        elif member.islnk():
            source = self._place(member.linkname)
            if not source.is_file() or source.is_symlink():
                raise InvalidBundle(f"in the code bundle {self._name}, {member.name!r} is a link to nothing")
            self._take(source.stat().st_size, member.name)
            shutil.copy2(source, _fresh(path))
        elif member.isreg():
            self._file(member, path)
        else:
            raise InvalidBundle(f"in the code bundle {self._name}, {member.name!r} is a device or a pipe")

    def _file(self, member: tarfile.TarInfo, path: Path) -> None:
        self._take(member.size, member.name)
        content = self._tar.extractfile(member)
        if content is None:
            raise InvalidBundle(f"in the code bundle {self._name}, {member.name!r} has no content")
        with content, _fresh(path).open("xb") as file:
            shutil.copyfileobj(content, file, _COPY_BYTES)
        path.chmod((member.mode & 0o777) | 0o600)
        os.utime(path, (member.mtime, member.mtime))

    def _link(self, member: tarfile.TarInfo, path: Path) -> None:
        leads_to = os.path.normpath(f"{path.parent.relative_to(self._target)}/{member.linkname}")
        if member.linkname.startswith("/") or leads_to.split("/")[0] == "..":
            raise InvalidBundle(f"in the code bundle {self._name}, {member.name!r} is a link that leads outside")
        _fresh(path).symlink_to(member.linkname)

    def _place(self, name: str) -> Path:
        parts = PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise InvalidBundle(f"in the code bundle {self._name}, the name {name!r} leads outside")
        return self._target.joinpath(*parts)

    def _refuse_detour(self, path: Path, name: str) -> None:
        """An entry below a link that an earlier entry made."""
        for parent in path.parents:
            if parent == self._target:
                return
            if parent.is_symlink():
                raise InvalidBundle(f"in the code bundle {self._name}, {name!r} lies behind a link")

    def _take(self, size: int, name: str) -> None:
        self._left -= size
        if self._left < 0:
            raise InvalidBundle(f"the code bundle {self._name} unpacks to more than {self._limit} bytes (at {name!r})")


def _fresh(path: Path) -> Path:
    """As `tar` does, a later entry of the same name replaces the earlier one."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    return path
