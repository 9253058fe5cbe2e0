"""Closed loops of workers, and what their calls took."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from benchmarks.client import Connection


@dataclass(slots=True)
class Samples:
    """Durations in seconds."""

    durations: list[float] = field(default_factory=list[float])
    elapsed: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.durations) / self.elapsed

    def quantile(self, share: float) -> float:
        return quantile(self.durations, share)

    def describe(self) -> str:
        p50, p99, longest = (self.quantile(share) * 1000 for share in (0.5, 0.99, 1.0))
        return f"{self.rate:,.0f}/s; p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {longest:.0f} ms"


def quantile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    if not ordered:
        raise ValueError("nothing was measured")
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


async def closed_loop(
    port: int, *, workers: int, seconds: float, call: Callable[[Connection, int], Awaitable[object]]
) -> Samples:
    """`workers` connections, each calling again as soon as it has its answer; `call` gets a number of its own."""
    connections = [await Connection(port).open() for _ in range(workers)]
    numbers = itertools.count()
    samples = Samples()
    # Collections of the client's garbage would show as slow calls of the server.
    gc.collect()
    gc.disable()
    began = time.perf_counter()

    async def work(connection: Connection) -> None:
        while (started := time.perf_counter()) < began + seconds:
            await call(connection, next(numbers))
            samples.durations.append(time.perf_counter() - started)

    try:
        async with asyncio.TaskGroup() as group:
            for number, connection in enumerate(connections):
                group.create_task(work(connection), name=f"worker-{number}")
        samples.elapsed = time.perf_counter() - began
    finally:
        gc.enable()
        for connection in connections:
            connection.close()
    return samples
