"""Two servers on one database, both firing every second, one of them killed with -9 in the middle of it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from flyteidl2.task import run_pb2 as task_run_pb2

from flyte_binary.control.clock import SystemClock
from tests.db_fixtures import SQLITE
from tests.rpc.triggers.conftest import World
from tests.rpc.triggers.messages import cron, deploy, deploy_task, deployment, set_active

DEADLINE_SECONDS = 60
ROOT = Path(__file__).parents[3]


class Scheduling:
    """A server and what it has made so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.made: list[str] = []

    async def until(self, count: int) -> None:
        while len(self.made) < count:
            assert await self._read(), "the server ended by itself"

    async def kill(self) -> None:
        """As a power cut does; what it had printed by then is read."""
        self._process.send_signal(signal.SIGKILL)
        while await self._read():
            pass
        await self._process.wait()

    async def _read(self) -> bool:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if line.endswith(b"\n"):
            self.made.append(line.decode().strip())
        return bool(line)


@asynccontextmanager
async def scheduling(world: World, tmp_path: Path) -> AsyncIterator[Scheduling]:
    kind = world.storage.kind
    place = str(tmp_path / "flyte.db") if kind == SQLITE else world.storage.url
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.rpc.triggers.scheduling", kind, place, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    server = Scheduling(process)
    try:
        yield server
    finally:
        if process.returncode is None:
            await server.kill()


async def times_by_trigger(world: World) -> dict[str, list[int]]:
    """In seconds, in order."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in await world.fired():
        spec = task_run_pb2.RunSpec.FromString(row.run_spec or b"")
        found[row.trigger_name].append(spec.run_start_time.seconds)
    return {name: sorted(times) for name, times in found.items()}


async def test_no_second_is_fired_twice_and_none_is_lost(world: World, tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(8)]
    world.clock.moment = SystemClock().now()
    await deploy_task(world)
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        scheduling(world, tmp_path) as one,
        scheduling(world, tmp_path) as two,
    ):
        for name in names:
            await deploy(world, deployment(name, cron("@every 1s")))
        start = world.clock.moment // 1_000_000
        await asyncio.gather(one.until(5), two.until(5))
        await one.kill()
        await two.until(len(two.made) + 4 * len(names))
        await set_active(world, False, *names)
        await two.kill()

    times = await times_by_trigger(world)
    assert sorted(times) == names
    for fired in times.values():
        assert fired == list(range(start + 1, start + 1 + len(fired)))
    made = [*one.made, *two.made]
    assert len(made) == len(set(made))
    # The last ones may have been made and not been told any more.
    assert set(made) <= {row.id.run for row in await world.fired()}
