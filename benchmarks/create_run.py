"""CreateRun at 8 clients, nothing launched meanwhile."""

from __future__ import annotations

from pathlib import Path

from benchmarks.client import Connection
from benchmarks.load import Samples, closed_loop
from benchmarks.report import Row
from benchmarks.requests import CREATE_RUN, create_run_request
from benchmarks.server_process import PAUSED, ServerProcess, running_server

SECONDS = 8.0


async def measure(folder: Path) -> list[Row]:
    async with running_server(folder, PAUSED) as server:
        await _create(server, clients=8, seconds=1.0)
        one = await _create(server, clients=1, seconds=3.0)
        eight = await _create(server, clients=8, seconds=SECONDS)
        many = await _create(server, clients=32, seconds=3.0)
    return [
        Row(
            what="CreateRun at 8 clients, admission closed",
            wanted="≥ 400/s, p99 < 100 ms",
            measured=eight.describe(),
            met=eight.rate >= 400 and eight.quantile(0.99) < 0.1,
            compared="reference 47/s, p99 508 ms",
        ),
        Row(
            what="CreateRun at 1 client; at 32",
            wanted="",
            measured=f"{one.describe()}; {many.describe()}",
            met=None,
            compared="reference 46/s, p99 47 ms; 72/s, p99 1,070 ms",
        ),
    ]


async def _create(server: ServerProcess, *, clients: int, seconds: float) -> Samples:
    async def call(connection: Connection, _number: int) -> None:
        await connection.send(CREATE_RUN, create_run_request(server.store).SerializeToString())

    return await closed_loop(server.port, workers=clients, seconds=seconds, call=call)
