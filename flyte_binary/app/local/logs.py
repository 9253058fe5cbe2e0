"""The output of an app's processes: of those that run, and of the last that have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from flyte_binary.app.backend import ReplicaLines, Replicas
from flyte_binary.app.local.backend import LocalAppBackend
from flyte_binary.app.local.local_app import LocalApp
from flyte_binary.app.local.processes import Processes, ReplicaId
from flyte_binary.app.local.replica import Replica
from flyte_binary.domain.errors import NotFound
from flyte_binary.domain.ids import AppId

INITIAL_LINES = 1000
_PAGE_LINES = 100
_SILENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.5
"""How often replicas that joined are looked for."""

_QUEUE_PAGES = 64

_Event = ReplicaLines | None


class LocalAppLogs:
    def __init__(self, backend: LocalAppBackend, processes: Processes) -> None:
        self._backend = backend
        self._processes = processes

    async def follow(self, app: AppId, replica: str | None) -> AsyncIterator[Replicas | ReplicaLines]:
        """Follows a running app for as long as it is there, also while it is scaled to zero; ends with what there is
        of a stopped one."""
        found = self._found(app, replica)
        if not found:
            what = "no replica and no log of one" if replica is None else f"no replica {replica!r}"
            raise NotFound(f"app {app} has {what}")
        stream = _Stream(self._processes)
        try:
            while True:
                joined = [one for one in found if stream.add(one)]
                if joined:
                    yield Replicas(tuple(one.id.name for one in stream.added))
                async for lines in stream.lines(_LOOK_SECONDS):
                    yield lines
                local = self._backend.app(app)
                is_over = local is None or local.stopped or (replica is not None and not found[0].lives)
                if is_over and stream.is_done:
                    return
                found = self._found(app, replica)
        finally:
            await stream.close()

    def _found(self, app: AppId, name: str | None) -> list[Replica]:
        """Those that live, else the last that has ended."""
        local: LocalApp | None = self._backend.app(app)
        replicas = [] if local is None else list(local.replicas.values())
        if name is not None:
            return [replica for replica in replicas if replica.id.name == name]
        return [replica for replica in replicas if replica.lives] or replicas[-1:]


class _Stream:
    """Several logs as one, in order for each."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._tasks: dict[Replica, asyncio.Task[None]] = {}
        self._pages: asyncio.Queue[ReplicaLines] = asyncio.Queue(_QUEUE_PAGES)

    @property
    def added(self) -> list[Replica]:
        return list(self._tasks)

    @property
    def is_done(self) -> bool:
        return self._pages.empty() and all(task.done() for task in self._tasks.values())

    def add(self, replica: Replica) -> bool:
        if replica in self._tasks:
            return False
        self._tasks[replica] = asyncio.create_task(self._read(replica.id), name=f"log of {replica.id.name}")
        return True

    async def lines(self, seconds: float) -> AsyncIterator[ReplicaLines]:
        """What comes within about that time; less if all logs have ended."""
        until = asyncio.get_running_loop().time() + seconds
        while (left := until - asyncio.get_running_loop().time()) > 0:
            if self.is_done:
                await asyncio.sleep(left)
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    page = await self._pages.get()
                yield page

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _read(self, replica: ReplicaId) -> None:
        position = await self._processes.tail_position(replica, lines=INITIAL_LINES)
        while position is None:  # launched a moment ago
            await asyncio.sleep(_LOOK_SECONDS)
            position = await self._processes.tail_position(replica, lines=INITIAL_LINES)
        while True:
            try:
                page = await self._processes.read(replica, position, limit_lines=_PAGE_LINES)
            except NotFound:  # removed by newer ones
                return
            position = page.position
            if page.lines:
                await self._pages.put(ReplicaLines(replica.name, page.lines))
            elif page.ended:
                return
            else:
                await self._processes.wait(replica, position, timeout_seconds=_SILENCE_SECONDS)
