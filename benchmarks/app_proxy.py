"""An app through the ingress, against the same app asked directly in the same run."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from flyteidl2.app import app_definition_pb2
from flyteidl2.app import app_payload_pb2 as pb

from benchmarks.client import CallFailed, Connection
from benchmarks.load import Samples, closed_loop
from benchmarks.report import Row
from benchmarks.requests import DOMAIN, PROJECT
from benchmarks.server_process import ServerProcess, running_server

ROUNDS = 4
"""Each asks directly, then through the ingress, so that both meet the same machine."""

SECONDS = 2.0
CLIENTS = 16
WANTED_MILLISECONDS, WANTED_PER_CORE = 1.0, 2000
WITHIN_SECONDS = 30.0
"""The app starts, and ends."""

_CREATE, _DELETE = "flyteidl2.app.AppService/Create", "flyteidl2.app.AppService/Delete"
_NAME = "hello"
_PROGRAM = Path(__file__).parent / "programs" / "hello_app.py"
_THROUGH = f"apps/{PROJECT}/{DOMAIN}/{_NAME}/"


@dataclass(frozen=True, slots=True)
class Compared:
    direct: Samples
    through: Samples
    core_seconds: float
    """Of the server, while it passed requests on."""

    @property
    def added_milliseconds(self) -> float:
        return (self.through.quantile(0.5) - self.direct.quantile(0.5)) * 1000

    @property
    def per_core(self) -> float:
        return len(self.through.durations) / self.core_seconds


async def measure(folder: Path) -> list[Row]:
    async with running_server(folder) as server, _app(server) as inside:
        await _compare(server, inside, clients=CLIENTS, rounds=1)
        one = await _compare(server, inside, clients=1, rounds=ROUNDS)
        many = await _compare(server, inside, clients=CLIENTS, rounds=ROUNDS)
    return [
        Row(
            what="what the ingress adds to a request of an app, p50 at 1 client",
            wanted=f"≤ {WANTED_MILLISECONDS:g} ms",
            measured=f"{one.added_milliseconds:.2f} ms ({one.through.describe()})",
            met=one.added_milliseconds <= WANTED_MILLISECONDS,
            compared=f"directly {one.direct.describe()}",
        ),
        Row(
            what=f"requests of an app through the ingress, for each core that the server uses; at {CLIENTS} clients",
            wanted=f"≥ {WANTED_PER_CORE:,}/s",
            measured=f"{many.per_core:,.0f}/s ({many.through.describe()})",
            met=many.per_core >= WANTED_PER_CORE,
            compared=f"directly {many.direct.describe()}",
        ),
    ]


async def _compare(server: ServerProcess, inside: int, *, clients: int, rounds: int) -> Compared:
    direct, through, core_seconds = Samples(), Samples(), 0.0
    for _ in range(rounds):
        _add(direct, await _ask(inside, "", clients))
        before = server.cpu_seconds()
        _add(through, await _ask(server.port, _THROUGH, clients))
        core_seconds += server.cpu_seconds() - before
    return Compared(direct, through, core_seconds)


async def _ask(port: int, path: str, clients: int) -> Samples:
    async def call(connection: Connection, _number: int) -> None:
        await connection.send(path, b"")

    return await closed_loop(port, workers=clients, seconds=SECONDS, call=call)


def _add(sum_: Samples, more: Samples) -> None:
    sum_.durations += more.durations
    sum_.elapsed += more.elapsed


@asynccontextmanager
async def _app(server: ServerProcess) -> AsyncGenerator[int]:
    """Its own port. The first request starts it; it would outlive the server."""
    app = app_definition_pb2.App()
    app.metadata.id.project, app.metadata.id.domain, app.metadata.id.name = PROJECT, DOMAIN, _NAME
    container = app.spec.container
    container.image = "ghcr.io/flyteorg/flyte:py3.11-v2.12.1"
    container.command.extend([sys.executable, str(_PROGRAM)])
    app.spec.autoscaling.replicas.max = 1
    connection = await Connection(server.port).open()
    try:
        await connection.call(_CREATE, pb.CreateRequest(app=app), pb.CreateResponse)
        async with asyncio.timeout(WITHIN_SECONDS):
            found = await _hello(connection)
        yield found["port"]
        await connection.call(_DELETE, pb.DeleteRequest(app_id=app.metadata.id), pb.DeleteResponse)
        async with asyncio.timeout(WITHIN_SECONDS):
            while psutil.pid_exists(found["pid"]):
                await asyncio.sleep(0.05)
    finally:
        connection.close()


async def _hello(connection: Connection) -> dict[str, int]:
    """What the app says of itself, as soon as the passes have made it one that can be asked."""
    while True:
        try:
            return json.loads(await connection.send(_THROUGH, b""))
        except CallFailed:
            await asyncio.sleep(0.1)
