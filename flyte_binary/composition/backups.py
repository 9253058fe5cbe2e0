"""`flyte-binary backup` and `restore`, for servers that keep everything on this machine.

The database is copied first and the objects afterwards: whatever a row of the copy refers to was stored before it, and
so is in the backup too. `backup.json` is written last; a folder without it is no backup.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # JSON

from flyte_binary import __version__
from flyte_binary.composition.databases import uses_postgres
from flyte_binary.config.model import Config
from flyte_binary.config.stores import StoreKind, store_choice
from flyte_binary.db.copy import check_copy, copy_database
from flyte_binary.domain.errors import FailedPrecondition, NotFound
from flyte_binary.lifecycle import held

DATABASE, STORE, KEYS = "flyte.db", "store", "keys"
MANIFEST = "backup.json"
FILES = "files.sha256"
"""One line a file of the store: digest, size, path; after the last column, so that paths may hold spaces."""

_KEY_FILES = ("url-signing.key", "secrets.key")
_LEFT_OUT = ".incoming"
"""What is being written."""

_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    files: int
    size_bytes: int


def backup(config: Config, target: Path) -> Copied:
    """Also while a server works on the data. Raises `FlyteError` with a sentence."""
    store = _own_store(config)
    if not config.sqlite_path.exists():
        raise NotFound(f"there is nothing to back up: {config.sqlite_path} does not exist (dataDir)")
    if target.exists() and any(target.iterdir()):
        raise FailedPrecondition(f"{target} is not empty: name a folder that does not exist yet")
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy_database(config.sqlite_path, target / DATABASE)
    schema = check_copy(target / DATABASE)
    for name in _KEY_FILES:
        if (config.data_dir / name).exists():
            _copy_key(config.data_dir / name, target / KEYS / name)
    copied = _copy_store(store, target)
    manifest = {
        "flyteBinary": __version__,
        "schema": schema,
        "madeAt": datetime.now(UTC).isoformat(),
        "store": str(store),
        "files": copied.files,
        "bytes": copied.size_bytes,
        "filesDigest": _digest(target / FILES),
        "databaseDigest": _digest(target / DATABASE),
    }
    _write(target / MANIFEST, json.dumps(manifest, indent=2).encode())
    return copied


def restore(config: Config, source: Path) -> Copied:
    """Into an empty data folder; checks every file on the way. Raises `FlyteError` with a sentence."""
    store = _own_store(config)
    manifest = _manifest(source)
    if manifest["store"] != str(store):
        raise FailedPrecondition(
            f"runs record their outputs by absolute paths, below {manifest['store']}, but this configuration has its "
            f"store in {store}: restore to where the backup was made (--data-dir, runs.storagePrefix)"
        )
    for taken in (config.sqlite_path, store):
        if taken.exists() and (taken.is_file() or any(taken.iterdir())):
            raise FailedPrecondition(f"{taken} is there already: a backup is restored to an empty data folder")
    if _digest(source / DATABASE) != manifest["databaseDigest"]:
        raise FailedPrecondition(f"{source / DATABASE} is damaged: its digest is not the one of the backup")
    check_copy(source / DATABASE)
    config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with held(config.data_dir, shared=False):
        copied = _restore_store(source, store, manifest)
        for key in sorted((source / KEYS).glob("*")) if (source / KEYS).exists() else []:
            _copy_key(key, config.data_dir / key.name)
        # Last: without a database there is nothing that a server would take for complete.
        config.sqlite_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _copy(source / DATABASE, config.sqlite_path)
    return copied


def _own_store(config: Config) -> Path:
    if uses_postgres(config):
        raise FailedPrecondition(
            "runs.database.postgres is set: back PostgreSQL up with its own tools (pg_dump, or continuous archiving)"
        )
    choice = store_choice(config)
    if choice.kind is not StoreKind.DISK:
        raise FailedPrecondition(
            f"the objects are in {choice.base_uri}: back the bucket up with its own tools (versioning, replication), "
            "and keep the database beside it"
        )
    return Path(choice.base_uri)


def _copy_store(store: Path, target: Path) -> Copied:
    files = size = 0
    (target / STORE).mkdir(mode=0o700)
    with (target / FILES).open("w", encoding="utf-8", errors="surrogateescape") as listing:
        for path in _files_of(store):
            relative = path.relative_to(store)
            try:
                digest, length = _copy(path, target / STORE / relative)
            except FileNotFoundError:
                continue  # removed since it was listed
            listing.write(f"{digest} {length} {json.dumps(str(relative))}\n")
            files, size = files + 1, size + length
        listing.flush()
        os.fsync(listing.fileno())
    return Copied(files=files, size_bytes=size)


def _restore_store(source: Path, store: Path, manifest: dict[str, Any]) -> Copied:
    if _digest(source / FILES) != manifest["filesDigest"]:
        raise FailedPrecondition(f"{source / FILES} is damaged: its digest is not the one of the backup")
    files = size = 0
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (source / FILES).open(encoding="utf-8", errors="surrogateescape") as listing:
        for line in listing:
            digest, _, rest = line.partition(" ")
            relative = Path(json.loads(rest.partition(" ")[2]))
            if relative.is_absolute() or ".." in relative.parts:
                raise FailedPrecondition(f"{source / FILES} names {relative}, which lies outside of the store")
            try:
                found, length = _copy(source / STORE / relative, store / relative)
            except FileNotFoundError as error:
                raise FailedPrecondition(f"the backup is incomplete: {error.filename} is missing") from error
            if found != digest:
                raise FailedPrecondition(f"{source / STORE / relative} is damaged: its digest is not the backup's")
            files, size = files + 1, size + length
    return Copied(files=files, size_bytes=size)


def _manifest(source: Path) -> dict[str, Any]:
    try:
        return json.loads((source / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise FailedPrecondition(f"{source} is no complete backup: {MANIFEST} cannot be read ({error})") from error


def _files_of(store: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(store):
        folders[:] = sorted(name for name in folders if name != _LEFT_OUT)
        for name in sorted(names):
            path = Path(folder) / name
            if not path.is_symlink() and path.is_file():
                yield path


def _copy(source: Path, target: Path) -> tuple[str, int]:
    """Digest and size of what was copied; it is on the disk."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    temporary = target.with_name(f"{target.name}.part")
    with source.open("rb") as original, temporary.open("wb") as copy:
        while chunk := original.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    shutil.copymode(source, temporary)
    temporary.replace(target)
    return digest.hexdigest(), size


def _copy_key(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(target, source.read_bytes())


def _write(target: Path, data: bytes) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FailedPrecondition(f"the backup is incomplete: {error}") from error
