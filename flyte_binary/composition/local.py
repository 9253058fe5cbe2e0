"""What the local execution backend is told: the interpreter, the address, the variables of tasks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flyte_binary.config.model import Config
from flyte_binary.executor.local.settings import LocalSettings


def local_settings(config: Config, port: int) -> LocalSettings:
    executor = config.executor
    environment = {name: os.environ[name] for name in executor.pass_environment if name in os.environ}
    return LocalSettings(
        folder=config.data_dir / "executor",
        endpoint=f"{loopback(config.runs.server.host)}:{port}",
        interpreter=executor.interpreter or _own_interpreter(),
        environment={**environment, **executor.environment},
        fork_server=executor.fork_server,
    )


def loopback(host: str) -> str:
    """Where tasks of this machine reach a server that listens on `host`."""
    if host in ("0.0.0.0", "localhost"):  # compared, not bound
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host


def _own_interpreter() -> Path:
    """The active virtual environment's, else the server's own."""
    active = os.environ.get("VIRTUAL_ENV")
    candidate = Path(active) / "bin" / "python" if active else None
    return candidate if candidate is not None and candidate.is_file() else Path(sys.executable)
