"""The files that were uploaded with an image: unpacked, fingerprinted, copied. Blocking."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Protocol

from flyte_binary.executor.local.environments.layers import InvalidImage
from flyte_binary.executor.local.unpack import unpack

_READ_BYTES = 1024 * 1024


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


class Context:
    def __init__(self, folder: Path) -> None:
        """`folder` need not be there yet; it is for this build alone."""
        self.folder = folder

    def unpack(self, archive: Path, *, limit_bytes: int) -> None:
        """Raises `InvalidBundle`. Without an archive nothing was uploaded."""
        self.folder.mkdir()
        if archive.exists():
            unpack(archive, self.folder, limit_bytes=limit_bytes, name="that came with the image")

    def fingerprint(self, path: str) -> str:
        """Of what is at `path`: contents, relative names, what may be executed. Raises `InvalidImage`."""
        found = self._require(path)
        digest = hashlib.sha256()
        if found.is_dir():
            for one in sorted(found.rglob("*")):
                if one.is_symlink() or one.is_file():
                    digest.update(f"\0{one.relative_to(found)}\0".encode(errors="surrogateescape"))
                    _add(digest, one)
        else:
            _add(digest, found)
        return digest.hexdigest()

    def copy(self, path: str, target: Path) -> None:
        """A folder's contents into `target`; a file as `target`."""
        found = self._require(path)
        if found.is_dir():
            shutil.copytree(found, target, symlinks=True, dirs_exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, target)

    def put_beside(self, path: str, folder: str, name: str) -> None:
        """A lock file where its project is, under its usual name."""
        target = self._require(folder) / name
        if self._require(path) != target:
            shutil.copy2(self.folder / path, target)

    def _require(self, path: str) -> Path:
        found = self.folder / path
        if not found.exists():
            raise InvalidImage(f"the image refers to {path!r}, which was not uploaded with it")
        if not found.resolve().is_relative_to(self.folder.resolve()):
            raise InvalidImage(f"the image refers to {path!r}, which leads out of what was uploaded with it")
        return found


def _add(digest: _Digest, path: Path) -> None:
    if path.is_symlink():
        digest.update(f"link {path.readlink()}".encode(errors="surrogateescape"))
        return
    digest.update(b"x" if path.stat().st_mode & 0o111 else b"-")
    with path.open("rb") as file:
        while data := file.read(_READ_BYTES):
            digest.update(data)
