"""Leaves a second and the time of one leaf: forked, against cold processes of the same leaf in the same run.

    python benchmarks/fork_server.py [--leaves 200] [--cold 12] [--slots 4]

No server around it: `LocalBackend` is asked to launch, and a leaf counts from the launch until its exit is
known, with supervisor, log, bundle, environment and folder. Forked and cold batches alternate, so that what
else the machine does meets both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import structlog

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from flyte_binary.executor.backend import AttemptPhase, AttemptSpec
from tests.fakes.local_attempts import Attempts

_TICKS = os.sysconf("SC_CLK_TCK")
_LEAF = """\
import flyte

env = flyte.TaskEnvironment(name="leaf_env")


@env.task
async def run() -> None:
    pass
"""


@dataclass
class Measured:
    alone: list[float] = field(default_factory=list[float])
    """Seconds from launch to known exit, nothing else running."""
    per_second: list[float] = field(default_factory=list[float])
    child_cpu: list[float] = field(default_factory=list[float])


class Runner:
    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self._waiting: dict[object, asyncio.Future[None]] = {}
        self._listening = asyncio.create_task(self._listen(), name="changes")
        self._bundle = attempts.leaf(module=_LEAF)
        self.child_cpu: list[float] = []

    async def leaf(self) -> float:
        spec = self._spec()
        self._waiting[spec.id] = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        await self._attempts.backend.launch(spec)
        state = await self._ended(spec)
        took = time.perf_counter() - began
        if state.exit_code != 0:
            raise SystemExit("\n".join(await self._attempts.lines(spec.id)))
        folder = self._attempts.settings.attempts / "flytesnacks/development/r1" / spec.id.action.name / "1"
        usage = json.loads((folder / "exit.json").read_text())
        self.child_cpu.append(usage["user_seconds"] + usage["system_seconds"])
        await self._attempts.backend.forget(spec.id)
        return took

    async def batch(self, count: int, slots: int) -> float:
        """Leaves a second."""
        free = asyncio.Semaphore(slots)

        async def one() -> None:
            async with free:
                await self.leaf()

        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(count)))
        return count / (time.perf_counter() - began)

    async def close(self) -> None:
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        await self._attempts.clear()
        await self._attempts.backend.stop_serving()

    def _spec(self) -> AttemptSpec:
        """All leaves of a run share their bundle, as the leaves of a fan-out do."""
        fresh = self._attempts.command()
        name = fresh.id.action.name
        argv = [word.replace(f"/{self._bundle.id.action.name}/", f"/{name}/") for word in self._bundle.argv]
        return AttemptSpec(
            id=fresh.id, nonce="1", argv=tuple(argv), env=fresh.env, image="auto", bundle_uri=self._bundle.bundle_uri
        )

    async def _ended(self, spec: AttemptSpec) -> object:
        while True:
            state = await self._attempts.backend.observe(spec.id, spec.nonce)
            if state.phase is AttemptPhase.EXITED:
                del self._waiting[spec.id]
                return state
            await self._waiting[spec.id]
            self._waiting[spec.id] = asyncio.get_running_loop().create_future()

    async def _listen(self) -> None:
        async for attempt in self._attempts.backend.changed():
            waiting = self._waiting.get(attempt)
            if waiting is not None and not waiting.done():
                waiting.set_result(None)


async def measure(arguments: argparse.Namespace, folder: Path) -> None:
    runners: dict[str, Runner] = {}
    for kind in ("forked", "cold"):
        (folder / kind).mkdir()
        attempts = Attempts(folder / kind, kind)
        await attempts.backend.start()
        runners[kind] = Runner(attempts)
        await runners[kind].leaf()
        runners[kind].child_cpu.clear()
    results = {kind: Measured() for kind in runners}
    overhead = 0.0
    forked, cold = runners["forked"], runners["cold"]
    for _ in range(arguments.rounds):
        for kind, runner in runners.items():
            for _ in range(5 if kind == "cold" else 20):
                results[kind].alone.append(await runner.leaf())
        before = cpu_of_ours(folder)
        results["forked"].per_second.append(await forked.batch(arguments.leaves // arguments.rounds, arguments.slots))
        overhead += cpu_of_ours(folder) - before
        results["cold"].per_second.append(await cold.batch(arguments.cold // arguments.rounds, arguments.slots))
    for kind, runner in runners.items():
        results[kind].child_cpu = runner.child_cpu
        await runner.close()
    report(results, overhead / arguments.leaves, arguments)


def cpu_of_ours(folder: Path) -> float:
    """CPU seconds of this process and of supervisors and fork servers below `folder`."""
    total = sum(os.times()[:2])
    for stat in _stats_of_ours(folder):
        total += sum(int(number) for number in stat[11:13]) / _TICKS
    return total


def _stats_of_ours(folder: Path) -> Iterator[list[str]]:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and str((entry / "fd/1").readlink()).startswith(str(folder)):
                yield (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue


def report(results: dict[str, Measured], overhead: float, arguments: argparse.Namespace) -> None:
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(
        f"Python {platform.python_version()}, {arguments.slots} slots, best of {arguments.rounds} rounds for leaves/s\n"
    )
    print("|        | leaves/s | one alone p50 | p90     | CPU of a leaf's process |")
    print("|--------|----------|---------------|---------|-------------------------|")
    for kind, one in results.items():
        deciles = statistics.quantiles(one.alone, n=10)
        print(
            f"| {kind:6} | {max(one.per_second):8.1f} | {statistics.median(one.alone) * 1000:10.0f} ms |"
            f" {deciles[-1] * 1000:4.0f} ms | {statistics.mean(one.child_cpu) * 1000:20.0f} ms |"
        )
    forked, cold = results["forked"], results["cold"]
    print(
        f"\nforked/cold: {max(forked.per_second) / max(cold.per_second):.1f} x the leaves,"
        f" {statistics.median(cold.alone) / statistics.median(forked.alone):.1f} x faster alone;"
        f" beside a forked leaf's own process: {overhead * 1000:.1f} ms CPU (backend, supervisor, fork server)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leaves", type=int, default=200, help="forked leaves in batches")
    parser.add_argument("--cold", type=int, default=12, help="cold leaves in batches")
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    structlog.configure(processors=[], wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory(prefix="fork-server-") as folder:
        asyncio.run(measure(parser.parse_args(), Path(folder)))


if __name__ == "__main__":
    main()
