"""An execution backend in memory: processes are scripts that a test writes, or that it moves by hand.

It keeps the promises of `executor/backend.py`: the same launch twice is one process, also after that
process is gone; stopping an absent one is success; every change is told, and what exists first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from flyteidl2.core import execution_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.domain import locations
from flyte_binary.domain.errors import Unavailable
from flyte_binary.domain.ids import AttemptId
from flyte_binary.domain.timestamps import from_micros
from flyte_binary.executor.backend import AttemptPhase, AttemptSpec, AttemptState, LogLine, LogPage
from tests.fakes.faults import Faults
from tests.fakes.memory_store import MemoryStore

ABSENT = AttemptState(phase=AttemptPhase.ABSENT)
LIVE = (AttemptPhase.STARTING, AttemptPhase.RUNNING)


class Process:
    """One attempt as it runs; its verbs are what a task does."""

    def __init__(self, spec: AttemptSpec, backend: MemoryBackend) -> None:
        self.spec = spec
        self.state = AttemptState(phase=AttemptPhase.STARTING)
        self.lines: list[LogLine] = []
        self.obeys_stop = True
        self.stops = 0
        """How often it was asked to end."""
        self._backend = backend

    @property
    def live(self) -> bool:
        return self.state.phase in LIVE

    @property
    def prefix(self) -> str:
        """Where its command tells it to write."""
        return self.spec.argv[self.spec.argv.index("--outputs-path") + 1]

    def run(self) -> None:
        self._become(replace(self.state, phase=AttemptPhase.RUNNING, started_at=from_micros(self._backend.clock.now())))

    def print(self, text: str) -> None:
        self.lines.append(LogLine(f"{text}\n", from_micros(self._backend.clock.now())))

    def write(self, name: str, body: bytes = b"") -> None:
        self._backend.store.objects[locations.join(self.prefix, name)] = body

    def exit(self, code: int, **details: object) -> None:
        ended = replace(
            self.state, phase=AttemptPhase.EXITED, exit_code=code, ended_at=from_micros(self._backend.clock.now())
        )
        self._become(replace(ended, **details))  # pyright: ignore[reportArgumentType]  # fields by name

    def vanish(self) -> None:
        """Killed together with whoever would have written down how it ended."""
        self._become(ABSENT)

    def succeed(self) -> None:
        self.write(locations.OUTPUTS)
        self.exit(0)

    def fail(
        self,
        code: str = "ValueError",
        *,
        message: str = "no",
        recoverable: bool = True,
        origin: execution_pb2.ExecutionError.ErrorKind = execution_pb2.ExecutionError.USER,
    ) -> None:
        """What the SDK's runtime does with an exception."""
        kinds = execution_pb2.ContainerError
        error = kinds(code=code, message=message, origin=origin)
        error.kind = kinds.RECOVERABLE if recoverable else kinds.NON_RECOVERABLE
        self.write(locations.ERROR, execution_pb2.ErrorDocument(error=error).SerializeToString())
        self.exit(0)

    def _become(self, state: AttemptState) -> None:
        self.state = state
        self._backend.tell(self.spec.id)


Script = Callable[[Process], None]


def keep_running(process: Process) -> None:
    """Until the test says otherwise."""


class MemoryBackend:
    def __init__(self, store: MemoryStore, clock: Clock, faults: Faults | None = None) -> None:
        self.store = store
        self.clock = clock
        self.faults = faults or Faults()
        self.script: Script = keep_running
        """What every process does as soon as it runs."""
        self.starts_slowly = False
        """A new process is STARTING until the test lets it run."""
        self.started: list[AttemptSpec] = []
        """Every process that there ever was."""
        self.processes: dict[AttemptId, Process] = {}
        self._nonces: set[str] = set()
        self._listeners: set[_Listener] = set()

    async def launch(self, attempt: AttemptSpec) -> None:
        await self.faults.around("launch", lambda: self._launch(attempt))

    async def observe(self, attempt: AttemptId, nonce: str, *, with_cpu: bool = False) -> AttemptState:
        return await self.faults.around("observe", lambda: self._observe(attempt, nonce))

    async def stop(self, attempt: AttemptId, *, grace_seconds: float) -> None:
        await self.faults.around("stop", lambda: self._stop(attempt))

    async def forget(self, attempt: AttemptId) -> None:
        await self.faults.around("forget", lambda: self._forget(attempt))

    async def changed(self) -> AsyncIterator[AttemptId]:
        listener = _Listener(self.processes)
        self._listeners.add(listener)
        try:
            while True:
                yield await listener.next()
        finally:
            self._listeners.discard(listener)

    async def tail_position(self, attempt: AttemptId, *, lines: int) -> int | None:
        process = self.processes.get(attempt)
        return None if process is None else max(0, len(process.lines) - lines)

    async def read(self, attempt: AttemptId, position: int, *, limit_lines: int) -> LogPage:
        process = self.processes.get(attempt)
        if process is None:
            return LogPage(position=position, ended=True)
        lines = process.lines[position : position + limit_lines]
        end = position + len(lines)
        return LogPage(lines=lines, position=end, ended=not process.live and end == len(process.lines))

    async def wait(self, attempt: AttemptId, position: int, *, timeout_seconds: float) -> None:
        """Nothing ever follows by itself."""

    def tell(self, attempt: AttemptId) -> None:
        for listener in self._listeners:
            listener.add(attempt)

    async def _launch(self, spec: AttemptSpec) -> None:
        existing = self.processes.get(spec.id)
        if spec.nonce in self._nonces:
            return
        if existing is not None and existing.live:
            existing.exit(-9)
            raise Unavailable("an earlier launch still runs")
        self._nonces.add(spec.nonce)
        self.started.append(spec)
        process = self.processes[spec.id] = Process(spec, self)
        self.tell(spec.id)
        if not self.starts_slowly:
            process.run()
            self.script(process)

    async def _observe(self, attempt: AttemptId, nonce: str) -> AttemptState:
        process = self.processes.get(attempt)
        return process.state if process is not None and process.spec.nonce == nonce else ABSENT

    async def _stop(self, attempt: AttemptId) -> None:
        process = self.processes.get(attempt)
        if process is None or not process.live:
            return
        process.stops += 1
        if process.obeys_stop:
            process.exit(-15)

    async def _forget(self, attempt: AttemptId) -> None:
        process = self.processes.get(attempt)
        if process is not None and process.live:
            raise Unavailable(f"attempt {attempt} still runs")
        self.processes.pop(attempt, None)


class _Listener:
    def __init__(self, existing: dict[AttemptId, Process]) -> None:
        self._dirty: dict[AttemptId, None] = dict.fromkeys(existing)
        self._event = asyncio.Event()

    def add(self, attempt: AttemptId) -> None:
        self._dirty[attempt] = None
        self._event.set()

    async def next(self) -> AttemptId:
        while not self._dirty:
            self._event.clear()
            await self._event.wait()
        attempt = next(iter(self._dirty))
        del self._dirty[attempt]
        return attempt
