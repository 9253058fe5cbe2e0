"""A served backend of ours behind two recorders: one for the calls of the driver, one for those of running tasks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.golden.played import Played
from tests.golden.recorder import Recorder, Recording
from tests.golden.serving import serving

READY_SECONDS = 30


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Conversations with our server, played when asked for. Tasks reach it through their recorder as an HTTP proxy."""
    home = tmp_path_factory.mktemp("golden")
    recording = Recording()
    port = _free_port()
    base_url = f"http://127.0.0.1:{port}"
    with (
        serving(Recorder(base_url, recording, "sdk")) as sdk_url,
        serving(Recorder(base_url, recording, "pod")) as pod_url,
    ):
        config = home / "flyte.yaml"
        # Nothing may come by itself in between.
        settings = {
            "executor": {"environment": {"HTTP_PROXY": pod_url}},
            "runs": {"triggerScheduler": {"enabled": False}},
        }
        config.write_text(yaml.safe_dump(settings), encoding="utf-8")
        process = _start(config, home, port)
        try:
            _wait_until_ready(base_url, process)
            side = Played(base_url, sdk_url, recording, home)
            yield side
            side.close()
        finally:
            process.terminate()
            process.wait(timeout=20)


def _start(config: Path, home: Path, port: int) -> subprocess.Popen[bytes]:
    server = Path(sys.executable).parent / "flyte-binary"
    arguments = [server, "--config", config, "--data-dir", home / "data", "--port", str(port)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    with (home / "server.log").open("wb") as log:
        return subprocess.Popen(arguments, stdout=log, stderr=subprocess.STDOUT, env=environment)


def _wait_until_ready(base_url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the server ended with status {process.returncode} while it started")
        try:
            if httpx.get(f"{base_url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"the server was not ready within {READY_SECONDS} s")


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
