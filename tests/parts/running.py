"""A program that listens on loopback, from its start until it answers, and to its end."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

START_SECONDS = 60.0
GUARD = Path(__file__).with_name("guard.py")


@dataclass(frozen=True)
class Running:
    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)


def start(
    name: str,
    command: Callable[[int, Path], Sequence[str]],
    *,
    environment: Mapping[str, str] | None = None,
    ready_path: str = "/",
    scheme: str = "http",
) -> Running:
    """`command` is made for a free port and an empty folder. Ready when anything is answered, whatever it is; ended
    with this process at the latest. Raises `AssertionError` with its log if it does not get there."""
    folder = Path(tempfile.mkdtemp(prefix=f"flyte-{name}-"))
    port = free_port()
    log = folder / "log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), *command(port, folder)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), **(environment or {})},
            cwd=folder,
            start_new_session=True,
        )
    running = Running(port, folder, process)
    atexit.register(running.end)
    deadline = time.monotonic() + START_SECONDS
    while not _answers(f"{scheme}://127.0.0.1:{port}{ready_path}"):
        assert process.poll() is None and time.monotonic() < deadline, f"{name} does not start:\n{log.read_text()}"
        time.sleep(0.05)
    return running


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(url: str) -> bool:
    try:
        httpx.get(url, timeout=2, verify=False)  # the certificate is a test's own
    except httpx.TransportError:
        return False
    return True
