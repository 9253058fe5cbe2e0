"""The folder of environments: what is built, what it is called, when it was used. Blocking; for several processes.

names/<image>.json      which digest an image has, and the run that built it
ready/<digest>.json     where the environment of a digest lies; written, atomically, when it is complete
recipes/<digest>/       what was uploaded for it, kept when the environment goes: it can be built again
locks/<digest>          held while that digest is built or removed
built/<digest>-<n>/     the environment: `venv`, and `work`, the files of its tasks' working folder; its time of change
                        is that of its last use
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from flyte_binary.executor.local.folders import remove_tree
from flyte_binary.executor.local.program.files import read_json, write_json

_TRASH = ".trash"
_LONGEST_NAME = 200
"""File systems take 255 bytes."""
_DESCRIPTION = "spec.pb"
_CONTEXT = "context.tar.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRun:
    """The run that built an image."""

    project: str = ""
    domain: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the image; `$PATH` and the like are still in them."""

    @property
    def python(self) -> Path:
        return self.folder / "venv/bin/python"

    @property
    def work(self) -> Path:
        return self.folder / "work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What an image's name stands for."""

    digest: str
    build_run: BuildRun
    built: Built | None
    """None if it was removed since, or its Python is gone."""


class Library:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, image: str) -> Named | None:
        """None for a name that no build has ever had. A few small files."""
        record = read_json(str(self._name_file(image)))
        if record is None:
            return None
        run = BuildRun(project=record["project"], domain=record["domain"], run=record["run"])
        return Named(digest=record["digest"], build_run=run, built=self.ready(record["digest"]))

    def ready(self, digest: str) -> Built | None:
        record = read_json(str(self._ready_file(digest)))
        if record is None:
            return None
        built = Built(folder=self._folder / "built" / record["folder"], variables=record["variables"])
        # Also false if the Python that it was made from has been removed.
        return built if built.python.exists() else None

    def touch(self, built: Built) -> None:
        """It is used now."""
        os.utime(built.folder)

    @contextmanager
    def locked(self, digest: str, waiting: Callable[[], None]) -> Generator[None]:
        """One at a time for a digest, across processes; a killed one holds it no longer. `waiting` is called
        before a wait."""
        with self._lock_file(digest).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def new_folder(self, digest: str) -> Path:
        """Empty, and taken for complete by nobody until `publish`."""
        folder = self._folder / "built" / f"{digest}-{uuid4().hex[:8]}"
        (folder / "work").mkdir(parents=True)
        return folder

    def publish(self, digest: str, built: Built) -> None:
        """From here on it is the digest's. What the digest had before stays until nobody uses it."""
        path = self._ready_file(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(str(path), {"folder": built.folder.name, "variables": dict(built.variables)})

    def keep_recipe(self, digest: str, description: bytes, context: bytes | None) -> None:
        """What the digest is built from: the description of the image and the archive of its files."""
        folder = self._folder / "recipes" / digest
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in ((_CONTEXT, context), (_DESCRIPTION, description)):
            if data is not None:
                temporary = folder / f".{uuid4().hex}"
                temporary.write_bytes(data)
                temporary.replace(folder / name)

    def recipe(self, digest: str) -> tuple[bytes, bytes | None] | None:
        folder = self._folder / "recipes" / digest
        try:
            description = (folder / _DESCRIPTION).read_bytes()
        except FileNotFoundError:
            return None
        context = folder / _CONTEXT
        return description, context.read_bytes() if context.exists() else None

    def name(self, image: str, digest: str, run: BuildRun) -> None:
        path = self._name_file(image)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Builds of several digests may end at the same moment, so the temporary file has a name of its own.
        temporary = path.with_name(f".{uuid4().hex}")
        record: dict[str, Any] = {"digest": digest, "project": run.project, "domain": run.domain, "run": run.run}
        write_json(str(temporary), record)
        temporary.replace(path)

    def folders(self) -> Iterator[tuple[str, Path]]:
        """Every folder of an environment, complete or not, with its digest."""
        root = self._folder / "built"
        for path in sorted(root.iterdir()) if root.exists() else []:
            digest, dash, _ = path.name.rpartition("-")
            if dash and not path.name.startswith("."):
                yield digest, path

    def remove(self, digest: str, folder: Path) -> bool:
        """False while the digest is being built."""
        with self._lock_file(digest).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            record = read_json(str(self._ready_file(digest)))
            if record is not None and record["folder"] == folder.name:
                self._ready_file(digest).unlink()
            trash = self._folder / "built" / _TRASH / uuid4().hex
            trash.parent.mkdir(exist_ok=True)
            shutil.move(folder, trash)
        remove_tree(trash)
        return True

    def empty_trash(self) -> None:
        """What a killed server had begun to remove."""
        remove_tree(self._folder / "built" / _TRASH)

    def _name_file(self, image: str) -> Path:
        name = quote(image, safe="")
        if len(name) > _LONGEST_NAME:
            name = hashlib.sha256(image.encode()).hexdigest()
        return self._folder / "names" / f"{name}.json"

    def _ready_file(self, digest: str) -> Path:
        return self._folder / "ready" / f"{digest}.json"

    def _lock_file(self, digest: str) -> Path:
        path = self._folder / "locks" / digest
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
