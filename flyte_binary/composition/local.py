"""The local execution backend, and what it is told: the interpreter, the address, the variables of tasks, images."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from flyte_binary.composition.databases import uses_postgres
from flyte_binary.config.model import Config
from flyte_binary.config.paths import task_interpreter
from flyte_binary.executor.local.backend import LocalBackend
from flyte_binary.executor.local.environments.environments import Environments, EnvironmentSettings
from flyte_binary.executor.local.environments.uv import build_environment, find_uv
from flyte_binary.executor.local.settings import LocalSettings
from flyte_binary.executor.secrets import SecretValues
from flyte_binary.storage.store import ObjectStore


def local_backend(
    config: Config, port: int, store: ObjectStore, store_environment: Mapping[str, str], secrets: SecretValues
) -> LocalBackend:
    """`store_environment` is what tasks need to reach the object store."""
    environments = Environments(environment_settings(config), store)
    return LocalBackend(local_settings(config, port, store_environment), store, environments, secrets)


def environment_settings(config: Config) -> EnvironmentSettings:
    images = config.executor.images
    return EnvironmentSettings(
        folder=config.data_dir / "executor" / "environments",
        uv=find_uv(images.uv),
        variables=build_environment(os.environ),
        unused_for=images.unused_for,
        max_size_bytes=images.max_size_bytes,
    )


def local_settings(config: Config, port: int, store_environment: Mapping[str, str]) -> LocalSettings:
    """`store_environment` is what tasks need to reach the object store."""
    executor = config.executor
    environment = {name: os.environ[name] for name in executor.pass_environment if name in os.environ}
    return LocalSettings(
        folder=config.data_dir / "executor",
        endpoint=f"{loopback(config.runs.server.host)}:{port}",
        interpreter=task_interpreter(executor, os.environ, Path(sys.executable)),
        environment={**store_environment, **environment, **executor.environment},
        interpreters={image: Path(python).expanduser() for image, python in executor.images.interpreters.items()},
        fork_server=executor.fork_server,
        server=f"server-{os.getpid()}" if uses_postgres(config) else "",
    )


def loopback(host: str) -> str:
    """Where tasks of this machine reach a server that listens on `host`."""
    if host in ("0.0.0.0", "localhost"):  # compared, not bound
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host
