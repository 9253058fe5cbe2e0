"""Enqueue through 20 workers, nothing launched meanwhile."""

from __future__ import annotations

from pathlib import Path

from benchmarks.load import closed_loop
from benchmarks.report import Row
from benchmarks.requests import ENQUEUE, Children, create_run, task_spec
from benchmarks.server_process import PAUSED, running_server

WORKERS = 20
SECONDS = 10.0


async def measure(folder: Path) -> list[Row]:
    async with running_server(folder, PAUSED) as server:
        children = Children(await create_run(server.port, server.store), server.store, task_spec())
        warm_up = await closed_loop(
            server.port,
            workers=WORKERS,
            seconds=1.0,
            call=lambda connection, number: connection.send(ENQUEUE, children.request(f"w{number}")),
        )
        used = server.cpu_seconds()
        samples = await closed_loop(
            server.port,
            workers=WORKERS,
            seconds=SECONDS,
            call=lambda connection, number: connection.send(ENQUEUE, children.request(f"c{number}")),
        )
        used = server.cpu_seconds() - used
    met = samples.rate >= 800 and samples.quantile(0.99) < 0.1 and samples.quantile(1.0) <= 1.0
    return [
        Row(
            what=f"Enqueue through {WORKERS} workers, {SECONDS:.0f} s, admission closed",
            wanted="≥ 800/s sustained, p99 < 100 ms, none > 1 s",
            measured=f"{samples.describe()}; server {used / samples.elapsed:.2f} core; {len(warm_up.durations)} before",
            met=met,
            compared="reference 40/s, p99 1,258 ms",
        )
    ]
