"""What the local execution backend is told: the interpreter, the address, the variables of tasks."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from flyte_binary.composition.databases import uses_postgres
from flyte_binary.config.model import Config
from flyte_binary.config.paths import task_interpreter
from flyte_binary.executor.local.settings import LocalSettings


def local_settings(config: Config, port: int, store_environment: Mapping[str, str]) -> LocalSettings:
    """`store_environment` is what tasks need to reach the object store."""
    executor = config.executor
    environment = {name: os.environ[name] for name in executor.pass_environment if name in os.environ}
    return LocalSettings(
        folder=config.data_dir / "executor",
        endpoint=f"{loopback(config.runs.server.host)}:{port}",
        interpreter=task_interpreter(executor, os.environ, Path(sys.executable)),
        environment={**store_environment, **environment, **executor.environment},
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
