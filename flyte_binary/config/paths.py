"""Whether the folders, files and the address of a configuration can be used on this machine, asked before the start."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from flyte_binary.config.errors import Problem
from flyte_binary.config.model import Config, Executor
from flyte_binary.config.stores import StoreKind, store_choice


def task_interpreter(executor: Executor, environ: Mapping[str, str], own: Path) -> Path:
    """The Python for tasks: as configured, else the active virtual environment's if it has the SDK, else `own`, the
    server's."""
    if executor.interpreter is not None:
        return executor.interpreter
    active = environ.get("VIRTUAL_ENV")
    if active and (Path(active) / "bin/python").exists() and (Path(active) / "bin/a0").exists():
        return Path(active) / "bin/python"
    return own


def check_paths(config: Config, origins: Mapping[str, str]) -> list[Problem]:
    """Folders that cannot be written to or created, and files that are not there, as problems. Creates nothing."""
    return [Problem(path, origins.get(path, ""), text) for path, text in _path_problems(config)]


def check_address(config: Config, origins: Mapping[str, str]) -> list[Problem]:
    """A problem if the address cannot be listened on now."""
    host, port = config.runs.server.host, config.runs.server.port
    try:
        infos = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        path = "runs.server.host"
        return [Problem(path, origins.get(path, ""), f'"{host}" is no address of this machine')]
    for family, kind, protocol, _, address in infos:
        with socket.socket(family, kind, protocol) as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind(address)
            except OSError as error:
                path, text = _address_problem(error, host, port)
                return [Problem(path, origins.get(path, ""), text)]
    return []


def _path_problems(config: Config) -> Iterator[tuple[str, str]]:
    folders = [("dataDir", config.data_dir)]
    store = store_choice(config)
    if config.runs.storage_prefix and store.kind is StoreKind.DISK:
        folders.append(("runs.storagePrefix", Path(store.base_uri)))
    secret = config.storage.stow.config.secret_key_path
    if secret is not None and not os.access(secret, os.R_OK):
        yield "storage.stow.config.secret_key_path", f"{secret} is not there, or this user may not read it"
    if config.runs.database.sqlite.path is not None:
        folders.append(("runs.database.sqlite.path", config.sqlite_path.parent))
    for path, folder in folders:
        if text := _folder_problem(folder):
            yield path, text
    if config.sqlite_path.is_dir():
        yield "runs.database.sqlite.path", f"{config.sqlite_path} is a folder; expected the path of a file"
    interpreter = config.executor.interpreter
    if interpreter is not None and not (interpreter.is_file() and os.access(interpreter, os.X_OK)):
        yield "executor.interpreter", f"{interpreter} is not there, or no program; expected the path of a Python"


def _folder_problem(folder: Path) -> str | None:
    for existing in (folder, *folder.parents):
        try:
            if not existing.exists():
                continue
            is_folder = existing.is_dir()
        except OSError as error:
            return f"cannot reach {folder}: {error.strerror}"
        if not is_folder:
            return f"cannot use {folder}: {existing} is not a folder"
        if not os.access(existing, os.W_OK | os.X_OK):
            done = "write to" if existing == folder else "create"
            return f"cannot {done} {folder}: this user may not write in {existing}"
        return None
    return None


def _address_problem(error: OSError, host: str, port: int) -> tuple[str, str]:
    if error.errno == errno.EADDRINUSE:
        return (
            "runs.server.port",
            f"port {port} of {host} is in use, perhaps by another flyte-binary; stop that one, or choose another port "
            "with --port (0 takes a free one)",
        )
    if error.errno == errno.EACCES:
        return "runs.server.port", f"this user may not listen on port {port}; expected one above 1023"
    return "runs.server.host", f"cannot listen on {host}: {error.strerror}; expected an address of this machine"
