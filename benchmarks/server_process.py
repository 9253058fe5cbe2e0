"""The server under measurement: `flyte-binary` as a subprocess on a free loopback port and a folder of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

PAUSED = {"executor.paused": "true"}
"""Admission closed: actions are taken in, nothing is launched."""

READY_WITHIN_SECONDS = 30.0
STOPPED_WITHIN_SECONDS = 20.0
_POLL_SECONDS = 0.002


@dataclass(kw_only=True)
class ServerProcess:
    process: subprocess.Popen[bytes]
    data_dir: Path
    port: int
    ready_after_seconds: float
    """From the start of the process to the first 200 of `/readyz`."""

    @property
    def store(self) -> Path:
        return self.data_dir / "store"

    def rss_bytes(self) -> int:
        """Of the server process alone."""
        return psutil.Process(self.process.pid).memory_info().rss

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def wait_for_exit(self) -> float:
        """Seconds until the process is gone. Raises `TimeoutError`."""
        started = time.perf_counter()
        async with asyncio.timeout(STOPPED_WITHIN_SECONDS):
            while self.process.poll() is None:
                await asyncio.sleep(_POLL_SECONDS)
        return time.perf_counter() - started


@asynccontextmanager
async def running_server(folder: Path, settings: Mapping[str, str] | None = None) -> AsyncIterator[ServerProcess]:
    """Started and ready; stopped at the end. `folder` is made, or taken up again, as the data folder."""
    server = await start_server(folder, settings)
    try:
        yield server
    finally:
        await stop_server(server)


async def start_server(folder: Path, settings: Mapping[str, str] | None = None) -> ServerProcess:
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [str(Path(sys.executable).parent / "flyte-binary"), "--data-dir", str(folder), "--port", str(port)]
    for path, value in (settings or {}).items():
        command += ["--set", f"{path}={value}"]
    with (folder / "server.log").open("ab") as log:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment(), start_new_session=True
        )
    try:
        await _until_ready(process, port, folder)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return ServerProcess(process=process, data_dir=folder, port=port, ready_after_seconds=time.perf_counter() - began)


async def stop_server(server: ServerProcess) -> None:
    if server.process.poll() is not None:
        return
    server.terminate()
    try:
        await server.wait_for_exit()
    except TimeoutError:
        server.process.kill()
        server.process.wait()


async def _until_ready(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    async with asyncio.timeout(READY_WITHIN_SECONDS):
        while not await _is_ready(port):
            if process.poll() is not None:
                tail = (folder / "server.log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the server ended with {process.returncode}:\n{tail}")
            await asyncio.sleep(_POLL_SECONDS)


async def _is_ready(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        return (await reader.readline()).split()[1:2] == [b"200"]
    except OSError:
        return False
    finally:
        writer.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_environment() -> dict[str, str]:
    """Without settings of the server or the SDK that whoever measures may have."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("FLYTE", "UCTL", "_U_", "_F_"))
    }
    environment["DO_NOT_TRACK"] = "1"
    return environment
