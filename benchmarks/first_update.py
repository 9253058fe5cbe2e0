"""Enqueue sent → first update of that action on the parent's watch."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from flyteidl2.actions import actions_service_pb2

from benchmarks.client import Connection, Stream
from benchmarks.load import closed_loop, quantile
from benchmarks.report import Row
from benchmarks.requests import ENQUEUE, WATCH_FOR_UPDATES, Children, child_id, create_run, task_spec
from benchmarks.server_process import PAUSED, ServerProcess, running_server

PER_SECOND = 100
"""What one parent asks for at most: the SDK's own limit."""

SECONDS = 8.0


async def measure(folder: Path) -> list[Row]:
    async with running_server(folder, PAUSED) as server:
        paced = await _paced(server)
        crowds = {workers: await _crowd(server, workers) for workers in (1, 8, 20)}
    p50, p99 = quantile(paced, 0.5), quantile(paced, 0.99)
    return [
        Row(
            what=f"Enqueue → first update on the parent's watch, {PER_SECOND}/s (the SDK's own limit for a parent)",
            wanted="p50 ≤ 15 ms, p99 ≤ 100 ms",
            measured=_describe(paced),
            met=p50 <= 0.015 and p99 <= 0.1,
        ),
        Row(
            what="the same, 1 / 8 / 20 workers without a pause",
            wanted="",
            measured=" / ".join(
                f"{len(values) / _SECONDS_EACH:,.0f}/s {_describe(values)}" for values in crowds.values()
            ),
            met=None,
            compared="reference p50 20 / 260 / 1,126 ms, p99 51 / 698 / 3,576 ms at 44 / 39 / 40 per s",
        ),
    ]


_SECONDS_EACH = 3.0


def _describe(values: list[float]) -> str:
    return f"p50 {quantile(values, 0.5) * 1000:.1f} ms, p99 {quantile(values, 0.99) * 1000:.1f} ms"


class _Parent:
    """A run whose root's watch is open; knows when each child was asked for and when it first showed."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self.sent: dict[str, float] = {}
        self._messages: list[tuple[float, bytes]] = []
        self._arrived = asyncio.Event()

    async def open(self) -> Children:
        run = await create_run(self._server.port, self._server.store)
        request = actions_service_pb2.WatchForUpdatesRequest(parent_action_id=child_id(run, "a0"))
        self._stream = await Stream(self._server.port, self._on_message).open(WATCH_FOR_UPDATES, request)
        async with asyncio.timeout(10):
            await self._arrived.wait()
        return Children(run, self._server.store, task_spec())

    async def latencies(self) -> list[float]:
        """Of all children; waits until each has shown. Raises `TimeoutError` if one never does."""
        async with asyncio.timeout(10):
            while len(found := self._first_updates()) < len(self.sent):
                await asyncio.sleep(0.05)
        self._stream.close()
        return [found[name] - sent for name, sent in self.sent.items()]

    def _on_message(self, at: float, message: bytes) -> None:
        self._messages.append((at, message))
        self._arrived.set()

    def _first_updates(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for at, message in self._messages:
            update = actions_service_pb2.WatchForUpdatesResponse.FromString(message).action_update
            if update.action_id.name in self.sent:
                found.setdefault(update.action_id.name, at)
        return found


async def _paced(server: ServerProcess) -> list[float]:
    parent = _Parent(server)
    children = await parent.open()
    idle = [await Connection(server.port).open() for _ in range(20)]
    began = time.perf_counter()
    calls: list[asyncio.Task[None]] = []

    async def enqueue(name: str) -> None:
        connection = idle.pop()
        body = children.request(name)
        parent.sent[name] = time.perf_counter()
        await connection.send(ENQUEUE, body)
        idle.append(connection)

    for number in range(int(PER_SECOND * SECONDS)):
        await asyncio.sleep(max(0.0, began + number / PER_SECOND - time.perf_counter()))
        calls.append(asyncio.create_task(enqueue(f"c{number}")))
    await asyncio.gather(*calls)
    return await parent.latencies()


async def _crowd(server: ServerProcess, workers: int) -> list[float]:
    parent = _Parent(server)
    children = await parent.open()

    async def call(connection: Connection, number: int) -> None:
        name = f"c{number}"
        body = children.request(name)
        parent.sent[name] = time.perf_counter()
        await connection.send(ENQUEUE, body)

    await closed_loop(server.port, workers=workers, seconds=_SECONDS_EACH, call=call)
    return await parent.latencies()
