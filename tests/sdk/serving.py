"""A served backend: `flyte-binary` as a process of its own on a free loopback port, killed and restarted at will."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

READY_SECONDS = 60
GONE_SECONDS = 30
CORES = {"executor.cores": "2"}
"""On every server, so that tests mean the same on a machine with more."""


@dataclass
class Server:
    """One data folder and port; the process behind them may be stopped, killed and started again."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    port: int = 0
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of the process beside the few that every server has."""

    shared: Path | None = None
    """The data folder, where several servers have the same."""

    def __post_init__(self) -> None:
        self.port = self.port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def data_dir(self) -> Path:
        return self.shared or self.folder / "data"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log_file(self) -> Path:
        return self.folder / "server.log"

    def log(self, after: int = 0) -> str:
        """What the server has logged, from a size of the log file on."""
        return self.log_file.read_bytes()[after:].decode("utf-8")

    def log_size(self) -> int:
        return self.log_file.stat().st_size

    def log_entries(self, after: int = 0) -> list[dict[str, Any]]:
        """The lines of the log that are entries, not the banner."""
        return [json.loads(line) for line in self.log(after).splitlines() if line.startswith("{")]

    def check_log(self) -> None:
        """Raises `AssertionError` if the server has met with a bug of its own."""
        failures = [entry for entry in self.log_entries() if entry["level"] in ("error", "critical")]
        assert not failures and "Traceback" not in self.log(), failures or self.log()

    def start(self) -> Server:
        """Started and ready. Raises `AssertionError` with the log of a server that did not get there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = self.spawn()
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the server did not get ready:\n{self.log()}")
            time.sleep(0.02)
        return self

    def spawn(self, port: int | None = None) -> subprocess.Popen[bytes]:
        """A server process on the same folder, not waited for."""
        command = [str(Path(sys.executable).parent / "flyte-binary"), "--data-dir", str(self.data_dir)]
        command += ["--port", str(port or self.port)]
        for path, value in {**CORES, **self.settings}.items():
            command += ["--set", f"{path}={value}"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8", **self.environment}
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """As a service supervisor does; attempts that run go on."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """As a power cut does to the process, and only to it."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(timeout=GONE_SECONDS)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def requests(self, method: str) -> int:
        """How many calls of an RPC (`package.Service/Method`) the server has finished answering."""
        lines = httpx.get(f"{self.url}/metrics", timeout=10).raise_for_status().text.splitlines()
        counts = [line.rsplit(" ", 1) for line in lines if line.startswith("flyte_rpc_requests_total")]
        return sum(int(float(count)) for labels, count in counts if f'method="{method}"' in labels)


@contextmanager
def serving(
    folder: Path, settings: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> Generator[Server]:
    """A ready server; nothing of it is left at the end, except its folder."""
    server = Server(folder, settings or {}, environment=environment or {}).start()
    try:
        yield server
    finally:
        if server.is_running():
            server.stop()
    server.check_log()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_client_config(server: Server, path: Path) -> Path:
    """The file that a user has, for this server."""
    path.write_text(
        f'admin: {{endpoint: "dns:///localhost:{server.port}", insecure: true}}\n'
        "task: {project: flytesnacks, domain: development}\n"
        "image: {builder: remote}\n",
        encoding="utf-8",
    )
    return path
