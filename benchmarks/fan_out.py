"""Fan-outs of leaves that do nothing, driven by the unmodified SDK: `flyte.run` to the result in hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from flyteidl2.workflow import run_service_pb2

from benchmarks.client import Connection
from benchmarks.cold import leaf_of, run_cold
from benchmarks.report import Row
from benchmarks.requests import run_id
from benchmarks.sdk import drive
from benchmarks.server_process import ServerProcess, running_server

SMALL, LARGE = 100, 1000
ROUNDS = 3
COLD_SLOTS = 4


async def measure(folder: Path) -> list[Row]:
    async with running_server(folder) as server:
        warm_up = await drive(server, "fan", 5)
        small = [await _fan_out(server, SMALL) for _ in range(ROUNDS)]
        async with _peak_memory(server) as peak:
            large = await _fan_out(server, LARGE)
        cold = await _cold(server, warm_up.run, folder / "cold")
    return [_small_row(small, cold), _large_row(large, peak.rss_bytes)]


def _small_row(seconds: list[float], cold: float) -> Row:
    ratio = cold / median(seconds)
    return Row(
        what=f"fan-out of {SMALL} no-op leaves, `run` to result, {ROUNDS} times",
        wanted="≤ 4 s; ≥ 10 times faster than cold `a0` with 4 slots",
        measured=f"median {median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})",
        met=median(seconds) <= 4 and ratio >= 10,
        compared=f"{SMALL} cold `a0` of the same leaf, {COLD_SLOTS} slots, same run: {cold:.1f} s, {ratio:.1f} times",
    )


def _large_row(seconds: float, peak_bytes: int) -> Row:
    return Row(
        what=f"fan-out of {LARGE:,} no-op leaves",
        wanted="≤ 32 s, server < 300 MB",
        measured=f"{seconds:.1f} s ({LARGE / seconds:.0f} leaves/s), server at most {peak_bytes / 1e6:.0f} MB",
        met=seconds <= 32 and peak_bytes < 300e6,
        compared="reference 71 to 109 s for 1,000 pods that finish at once",
    )


async def _fan_out(server: ServerProcess, leaves: int) -> float:
    driven = await drive(server, "fan", leaves)
    if driven.result != leaves:
        raise RuntimeError(f"run {driven.run} returned {driven.result}, not {leaves}")
    return driven.seconds


async def _cold(server: ServerProcess, run: str, folder: Path) -> float:
    """Seconds for as many cold processes of the same leaf."""
    connection = await Connection(server.port).open()
    request = run_service_pb2.ListActionsRequest(run_id=run_id(run))
    request.request.limit = 10
    listed = await connection.call(
        "flyteidl2.workflow.RunService/ListActions", request, run_service_pb2.ListActionsResponse
    )
    connection.close()
    child = next(action.id.name for action in listed.actions if action.id.name != "a0")
    leaf = await leaf_of(server, run_id(run), child)
    slots = asyncio.Semaphore(COLD_SLOTS)

    async def one() -> None:
        async with slots:
            await run_cold(server, leaf, folder)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(SMALL):
            group.create_task(one(), name=f"cold-{number}")
    return time.perf_counter() - began


@dataclass(slots=True)
class _Peak:
    rss_bytes: int = 0


@asynccontextmanager
async def _peak_memory(server: ServerProcess) -> AsyncIterator[_Peak]:
    """The largest resident set of the server process, looked at ten times a second."""
    peak = _Peak()

    async def look() -> None:
        while True:
            peak.rss_bytes = max(peak.rss_bytes, server.rss_bytes())
            await asyncio.sleep(0.1)

    looking = asyncio.create_task(look(), name="peak-memory")
    try:
        yield peak
    finally:
        looking.cancel()
