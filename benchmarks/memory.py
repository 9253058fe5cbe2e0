"""Resident memory of the server process: idle, and after 10,000 actions that really ran."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.report import Row
from benchmarks.sdk import drive
from benchmarks.server_process import ServerProcess, running_server

RUNS, LEAVES = 10, 999
"""With their parents: 10,000 actions."""

SETTLE_SECONDS = 5.0


async def measure(folder: Path) -> list[Row]:
    async with running_server(folder) as server:
        empty = await _settled(server)
        for _ in range(RUNS):
            driven = await drive(server, "fan", LEAVES)
            if driven.result != LEAVES:
                raise RuntimeError(f"run {driven.run} returned {driven.result}, not {LEAVES}")
        full = await _settled(server)
    async with running_server(folder) as server:
        restarted = await _settled(server)
    return [
        Row(
            what=f"idle memory of the server process; after {RUNS * (LEAVES + 1):,} finished actions",
            wanted="< 150 MB; + < 50 MB",
            measured=f"{empty / 1e6:.0f} MB; {(full - empty) / 1e6:+.0f} MB; started again {restarted / 1e6:.0f} MB",
            met=empty < 150e6 and full - empty < 50e6,
            compared="reference 118 MB; 985 MB after 13,108",
        )
    ]


async def _settled(server: ServerProcess) -> int:
    await asyncio.sleep(SETTLE_SECONDS)
    return server.rss_bytes()
