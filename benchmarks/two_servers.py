"""Enqueue through two servers on one PostgreSQL, nothing launched meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.load import Samples, closed_loop
from benchmarks.report import Row
from benchmarks.requests import ENQUEUE, Children, create_run, task_spec
from benchmarks.server_process import PAUSED, ServerProcess, running_server
from benchmarks.stored import kinds

WORKERS_EACH = 10
SECONDS = 8.0


async def measure(folder: Path) -> list[Row]:
    with kinds() as databases:
        settings = {**PAUSED, **databases[-1].settings}
        async with running_server(folder, settings) as one, running_server(folder, settings) as two:
            await _enqueue(one, "w", 1.0)
            used = one.cpu_seconds() + two.cpu_seconds()
            both = await asyncio.gather(_enqueue(one, "x", SECONDS), _enqueue(two, "y", SECONDS))
            used = one.cpu_seconds() + two.cpu_seconds() - used
    together = Samples([each for samples in both for each in samples.durations], max(each.elapsed for each in both))
    return [
        Row(
            what=f"Enqueue through two servers on one PostgreSQL, {WORKERS_EACH} workers each, {SECONDS:.0f} s",
            wanted="≥ 1,000/s",
            measured=f"{together.describe()}; servers {used / together.elapsed:.2f} cores",
            met=together.rate >= 1000,
            compared="reference 40/s with one",
        )
    ]


async def _enqueue(server: ServerProcess, prefix: str, seconds: float) -> Samples:
    children = Children(await create_run(server.port, server.store), server.store, task_spec())
    return await closed_loop(
        server.port,
        workers=WORKERS_EACH,
        seconds=seconds,
        call=lambda connection, number: connection.send(ENQUEUE, children.request(f"{prefix}{number}")),
    )
