"""A leaf on an idle machine: Enqueue answered → its first line runs, beside a cold `a0` of the same leaf."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from flyteidl2.actions import actions_service_pb2
from flyteidl2.common import phase_pb2
from flyteidl2.workflow import run_service_pb2

from benchmarks.client import Connection, Stream
from benchmarks.cold import leaf_of, run_cold, started_at
from benchmarks.load import quantile
from benchmarks.report import Row
from benchmarks.requests import ENQUEUE, WATCH_FOR_UPDATES, Children, child_id, run_id
from benchmarks.sdk import drive
from benchmarks.server_process import ServerProcess, running_server

FORKED, COLD = 30, 10
PAUSE_SECONDS = 0.2


async def measure(folder: Path) -> list[Row]:
    async with running_server(folder) as server:
        parent = _Parent(server, (await drive(server, "hold", 120)).run)
        first = await parent.first_child()
        leaf = await leaf_of(server, parent.run, first)
        children = Children(parent.run, server.store, leaf.spec)
        connection = await Connection(server.port).open()
        forked: list[float] = []
        for number in range(FORKED):
            name = f"leaf{number}"
            await connection.send(ENQUEUE, children.request(name, leaf.input_uri))
            answered = time.time()
            await parent.until_succeeded(name)
            forked.append(started_at(Path(leaf.run_output_base) / name / "1") - answered)
            await asyncio.sleep(PAUSE_SECONDS)
        cold = [await run_cold(server, leaf, folder / "cold") for _ in range(COLD)]
        await parent.abort(connection)
    ratio = quantile(cold, 0.5) / quantile(forked, 0.5)
    return [
        Row(
            what="leaf action, Enqueue answered → user code starts, idle machine",
            wanted="p50 ≤ 100 ms; ≥ 8 times faster than a cold `a0`",
            measured=f"p50 {quantile(forked, 0.5) * 1000:.0f} ms, p99 {quantile(forked, 0.99) * 1000:.0f} ms",
            met=quantile(forked, 0.5) <= 0.1 and ratio >= 8,
            compared=f"cold `a0` of it, same run: p50 {quantile(cold, 0.5) * 1000:.0f} ms, {ratio:.1f} times",
        )
    ]


class _Parent:
    """A running task of the SDK's, below which the measurement asks for more leaves."""

    def __init__(self, server: ServerProcess, name: str) -> None:
        self.run = run_id(name)
        self._server = server
        self._succeeded: dict[str, asyncio.Event] = {}
        self._any = asyncio.Event()

    async def first_child(self) -> str:
        """The name of the leaf that the task called itself, once it has succeeded."""
        request = actions_service_pb2.WatchForUpdatesRequest(parent_action_id=child_id(self.run, "a0"))
        self._stream = await Stream(self._server.port, self._on_message).open(WATCH_FOR_UPDATES, request)
        async with asyncio.timeout(30):
            await self._any.wait()
        return next(iter(self._succeeded))

    async def until_succeeded(self, name: str) -> None:
        async with asyncio.timeout(30):
            await self._succeeded.setdefault(name, asyncio.Event()).wait()

    async def abort(self, connection: Connection) -> None:
        request = run_service_pb2.AbortRunRequest(run_id=self.run, reason="measured")
        await connection.call("flyteidl2.workflow.RunService/AbortRun", request, run_service_pb2.AbortRunResponse)
        connection.close()
        self._stream.close()

    def _on_message(self, _at: float, message: bytes) -> None:
        update = actions_service_pb2.WatchForUpdatesResponse.FromString(message).action_update
        if update.action_id.name not in ("", "a0") and update.phase == phase_pb2.ACTION_PHASE_SUCCEEDED:
            self._succeeded.setdefault(update.action_id.name, asyncio.Event()).set()
            self._any.set()
