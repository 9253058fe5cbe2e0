"""Folders of attempts: which attempt a folder is, who holds it, what is known of it. Blocking.

A folder is *held* while someone has `attempt.json` open with an exclusive `flock`: this server from the
claim on, then, by the descriptor it was handed, the supervisor until the attempt's end. No lock means
that nothing runs there, whatever was killed in between, and no process number is guessed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from flyte_binary.domain.errors import Unavailable
from flyte_binary.domain.ids import ActionId, AttemptId
from flyte_binary.executor.local.program import files

_DEPTH = 5
_TRASH = ".trash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What stands in a folder."""

    nonce: str
    held: bool
    started: dict[str, Any] | None = None  # Any: JSON
    exit: dict[str, Any] | None = None  # Any: JSON

    @property
    def lost(self) -> bool:
        """It ran, and whoever could have told how it ended was killed."""
        return self.started is not None and self.exit is None and not self.held


class Folders:
    def __init__(self, root: Path) -> None:
        self._root = root
        # `flock` cannot be asked without being taken for a moment; nobody may claim in that moment.
        self._gate = threading.RLock()

    def name(self, attempt: AttemptId) -> str:
        action = attempt.action
        parts = (action.project, action.domain, action.run, action.name, str(attempt.number))
        return "/".join(_encode(part) for part in parts)

    def path(self, attempt: AttemptId) -> Path:
        return self._root / self.name(attempt)

    def attempt(self, name: str) -> AttemptId | None:
        """The inverse of `name`; None for what is not a name of ours."""
        parts = [unquote(part) for part in name.split("/")]
        if len(parts) != _DEPTH or not parts[-1].isdecimal():
            return None
        return AttemptId(ActionId(*parts[:-1]), int(parts[-1]))

    def all(self) -> Iterator[AttemptId]:
        """Every attempt that has a folder."""
        for name in _walk(self._root, _DEPTH):
            attempt = self.attempt(name)
            if attempt is not None:
                yield attempt

    def environments_in_use(self) -> frozenset[Path]:
        """Folders of the environments that living attempts run in."""
        records = [
            files.read_json(str(self.path(attempt) / files.ENVIRONMENT))
            for attempt in self.all()
            if (found := self.look(attempt)) is not None and found.held
        ]
        return frozenset(Path(record["folder"]) for record in records if record is not None)

    def look(self, attempt: AttemptId) -> Found | None:
        """None if there is no such folder, or it was made but never claimed."""
        path = self.path(attempt)
        claim = files.read_json(str(path / files.ATTEMPT))
        if claim is None:
            return None
        ended = files.read_json(str(path / files.EXIT))
        if ended is not None:
            return Found(
                nonce=claim["nonce"], held=False, exit=ended, started=files.read_json(str(path / files.STARTED))
            )
        held = self._is_held(path)
        return Found(
            nonce=claim["nonce"],
            held=held,
            started=files.read_json(str(path / files.STARTED)),
            # It may have ended between the two looks.
            exit=None if held else files.read_json(str(path / files.EXIT)),
        )

    def claim(self, attempt: AttemptId, nonce: str) -> int | None:
        """Make the folder anew and take its lock; None if this launch has been before, alive or not.

        Returns the descriptor that is the lock. Raises `Unavailable` while another launch of the same
        attempt still runs.
        """
        path = self.path(attempt)
        with self._gate:
            found = self.look(attempt)
            if found is not None and found.held and found.nonce != nonce:
                raise Unavailable(f"attempt {attempt} still runs from an earlier launch; it is being stopped")
            if found is not None and found.nonce == nonce and (found.held or found.started or found.exit):
                return None
            earlier = self._set_aside(path)
            _make(path)
            lock = os.open(path / files.ATTEMPT, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(lock, json.dumps({"nonce": nonce}).encode())
        if earlier is not None:
            remove_tree(earlier)
        return lock

    def discard(self, path: Path) -> None:
        """Out of sight at once, whatever its permissions; then removed."""
        aside = self._set_aside(path)
        if aside is None:
            return
        remove_tree(aside)
        for parent in list(path.parents)[: _DEPTH - 1]:
            try:
                parent.rmdir()
            except OSError:
                return  # not empty

    def _set_aside(self, path: Path) -> Path | None:
        trash = self._root / _TRASH / uuid4().hex
        try:
            path.rename(trash)
        except FileNotFoundError:
            if not path.exists():
                return None
            trash.parent.mkdir(parents=True, exist_ok=True)
            path.rename(trash)
        return trash

    def empty_trash(self) -> None:
        """What a killed server had begun to remove: also the folders above an attempt, which then stand empty.

        Only while nobody launches.
        """
        remove_tree(self._root / _TRASH)
        _remove_empty(self._root, _DEPTH - 1)

    def _is_held(self, path: Path) -> bool:
        with self._gate:
            try:
                descriptor = os.open(path / files.ATTEMPT, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return False
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(descriptor)
            return False


def remove_tree(path: Path) -> None:
    """Also folders that their owner made read-only. Absent is fine."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except PermissionError:
        path.chmod(stat.S_IRWXU)
        for folder, below, _ in os.walk(path):
            for name in below:
                inner = Path(folder) / name
                if not inner.is_symlink():
                    inner.chmod(stat.S_IRWXU)
        shutil.rmtree(path)


def copy_missing(source: Path, target: Path) -> None:
    """What is below the folder `source`, except where `target` has something of that name already."""
    for entry in os.scandir(source):
        place = target / entry.name
        if entry.is_dir(follow_symlinks=False) and not place.is_symlink():
            if not place.exists() or place.is_dir():
                place.mkdir(exist_ok=True)
                copy_missing(Path(entry.path), place)
        elif not (place.exists() or place.is_symlink()):
            shutil.copy2(entry.path, place, follow_symlinks=False)


def _make(path: Path) -> None:
    """A neighbour that is discarded meanwhile may take the parents away; then once more."""
    for _ in range(10):
        try:
            path.mkdir(mode=0o700, parents=True)
        except FileNotFoundError:
            continue
        return
    raise Unavailable(f"cannot make the folder {path}")


def _remove_empty(root: Path, depth: int) -> None:
    """Folders down to `depth` below `root` in which nothing is, the inner ones first."""
    for entry in list(os.scandir(root)) if root.is_dir() else ():
        if not entry.is_dir(follow_symlinks=False):
            continue
        if depth > 1:
            _remove_empty(Path(entry.path), depth - 1)
        with contextlib.suppress(OSError):  # not empty
            Path(entry.path).rmdir()


def _walk(root: Path, depth: int, prefix: str = "") -> Iterator[str]:
    try:
        entries = list(os.scandir(root))
    except OSError:
        return
    for entry in entries:
        if entry.name == _TRASH or not entry.is_dir(follow_symlinks=False):
            continue
        name = f"{prefix}{entry.name}"
        if depth == 1:
            yield name
        else:
            yield from _walk(Path(entry.path), depth - 1, f"{name}/")


def _encode(part: str) -> str:
    return quote(part, safe="") if part not in (".", "..", _TRASH) else part.replace(".", "%2E")
