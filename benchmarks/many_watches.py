"""A thousand open watches of one run: what they hold, and what they cost while nothing happens."""

from __future__ import annotations

import asyncio
from pathlib import Path

from flyteidl2.workflow import run_service_pb2

from benchmarks.client import Stream
from benchmarks.report import Row
from benchmarks.requests import create_run
from benchmarks.server_process import PAUSED, running_server

WATCHES = 1000
IDLE_SECONDS = 20.0


async def measure(folder: Path) -> list[Row]:
    async with running_server(folder, PAUSED) as server:
        run = await create_run(server.port, server.store)
        before = server.rss_bytes()
        request = run_service_pb2.WatchActionsRequest(run_id=run)
        streams: list[Stream] = []
        for _ in range(WATCHES):
            stream = Stream(server.port, lambda _at, _message: None)
            streams.append(await stream.open("flyteidl2.workflow.RunService/WatchActions", request))
        await asyncio.sleep(3)
        held = server.rss_bytes() - before
        used = server.cpu_seconds()
        await asyncio.sleep(IDLE_SECONDS)
        share = (server.cpu_seconds() - used) / IDLE_SECONDS
        for stream in streams:
            stream.close()
    return [
        Row(
            what=f"{WATCHES:,} open watches of one run",
            wanted="< 200 MB more; no CPU when idle",
            measured=f"{held / 1e6:.0f} MB more; {share * 100:.1f} % of a core over {IDLE_SECONDS:.0f} s",
            met=held < 200e6 and share < 0.02,
            compared="",
        )
    ]
