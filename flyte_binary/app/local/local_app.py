"""One app on this machine: its replicas, who waits for one, and the loop that makes them what is needed.

Everything happens on the event loop. The loop of an app takes a step when something changed, and every second while
it has a replica; a step looks at what there is and starts or ends replicas, so nothing depends on the order of events.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass

import structlog

from flyte_binary.app.backend import AppCondition, AppDefinition
from flyte_binary.app.ingress.ports import AppBusy, AppFailed, AppStopped, StartTimeout
from flyte_binary.app.local.conditions import Facts, Failure, conditions_of
from flyte_binary.app.local.processes import Processes, ProcessPhase, ProcessState, ReplicaId
from flyte_binary.app.local.program import program_of, replica_spec
from flyte_binary.app.local.replica import Replica, ReplicaPhase, free_port
from flyte_binary.app.local.scaling import Demand, Limits, limits_of
from flyte_binary.app.local.settings import LocalAppSettings
from flyte_binary.app.local.starting import NotReady, launch, until_it_listens
from flyte_binary.control.clock import Clock
from flyte_binary.db.app_replicas import ReplicaRow
from flyte_binary.db.database import Database
from flyte_binary.domain.errors import FlyteError
from flyte_binary.domain.ids import AppId
from flyte_binary.domain.timestamps import from_micros

log = structlog.get_logger(__name__)

_STEP_SECONDS = 1.0
_FIRST_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 60.0
_STABLE_SECONDS = 60.0
"""A replica that has served so long starts the count of failures anew when it ends."""

_TAIL_LINES = 20
_TAIL_CHARACTERS = 2000
_P = ReplicaPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all apps of this machine share."""

    settings: LocalAppSettings
    processes: Processes
    database: Database
    clock: Clock
    changed: Callable[[AppId], None]
    """To be called when what `LocalApp.conditions` says is another."""


class LocalApp:
    def __init__(self, app: AppId, around: Surroundings) -> None:
        self.id = app
        self.conditions: tuple[AppCondition, ...] = ()
        self.definition: AppDefinition | None = None
        self.stopped = True
        self._is_told = False
        """What is wanted is known; before, what runs is left alone."""

        self._around = around
        self._settings = around.settings
        self._replicas: dict[int, Replica] = {}
        self._waiting: deque[asyncio.Future[Replica]] = deque()
        self._demand = Demand(time.monotonic())
        self._limits = Limits(minimum=0, maximum=1, scaledown_seconds=60)
        self._proven = ""
        """The spec of which a replica has listened, by its SHA."""

        self._failure: Failure | None = None
        self._failures = 0
        self._retry_at = 0.0
        self._port_of_its_own = False
        self._dirty: set[int] = set()
        self._wake = asyncio.Event()
        self._stepped = asyncio.Event()
        """Set for a moment after each step."""

        self._starts: dict[int, asyncio.Task[None]] = {}
        self._loop = asyncio.create_task(self._run(), name=f"app {app}")

    # What is wanted

    def deploy(self, definition: AppDefinition) -> None:
        """Running, with this spec; the same again changes nothing."""
        if self.definition is not None and self.definition.sha == definition.sha and not self.stopped:
            self.definition = definition
            return
        self.definition, self.stopped, self._is_told = definition, False, True
        self._limits = limits_of(definition.spec, self._settings)
        self._failure, self._failures, self._retry_at = None, 0, 0.0
        self._port_of_its_own = False
        self._demand.asked(time.monotonic())
        self._tell()
        self.wake()

    def stop(self, definition: AppDefinition | None = None) -> None:
        if definition is not None:
            self.definition = definition
        self.stopped = self._is_told = True
        self._failure = None
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(AppStopped(self.id))
        self._tell()
        self.wake()

    def adopt(self, row: ReplicaRow, state: ProcessState) -> None:
        """One from before this server started."""
        replica = Replica(row, _P.STARTING, row.port, began=time.monotonic())
        self._replicas[row.number] = replica
        if row.ready:
            self._proven = row.sha
        if state.phase in (ProcessPhase.ABSENT, ProcessPhase.EXITED):
            replica.phase = _P.ENDED
            return
        self._begin(replica, self._see_it_ready(replica))

    # What is seen

    @property
    def replicas(self) -> Mapping[int, Replica]:
        return self._replicas

    @property
    def live_replicas(self) -> int:
        return sum(1 for replica in self._replicas.values() if replica.lives)

    @property
    def sha(self) -> str:
        return "" if self.definition is None else self.definition.sha

    def note(self, number: int) -> None:
        """Something happened to that process."""
        self._dirty.add(number)
        self.wake()

    def wake(self) -> None:
        self._wake.set()

    async def until_gone(self) -> None:
        """Returns when no process is left; the app was stopped before."""
        while any(replica.lives for replica in self._replicas.values()):
            await self._stepped.wait()

    async def forget(self) -> None:
        """Remove what is left of it."""
        for replica in list(self._replicas.values()):
            await self._forget(replica)

    async def close(self) -> None:
        """The server ends; the processes stay."""
        tasks = [self._loop, *self._starts.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Requests

    async def acquire(self) -> Replica:
        """A replica that serves, for one request; started if there is none. Raises what `ingress.ports` says."""
        if self.stopped or self.definition is None:
            raise AppStopped(self.id)
        self._demand.arrived(time.monotonic())
        try:
            replica = self._choose() or await self._wait_for_one()
        except BaseException:
            self._demand.ended(time.monotonic())
            raise
        replica.in_flight += 1
        if self._demand.in_flight > self._limits.concurrency:
            self.wake()
        return replica

    def release(self, replica: Replica) -> None:
        replica.in_flight -= 1
        self._demand.ended(time.monotonic())
        if replica.phase is _P.ENDING:
            self.wake()

    def _choose(self) -> Replica | None:
        """One of the newest that serves, the least busy."""
        serving = [replica for replica in self._replicas.values() if replica.serves]
        newest = [replica for replica in serving if replica.row.sha == self.sha]
        return min(newest or serving, key=lambda replica: replica.in_flight, default=None)

    async def _wait_for_one(self) -> Replica:
        if self._failure is not None and time.monotonic() < self._retry_at and not self._starts:
            raise AppFailed(self.id, self._failure.message, retry_after=self._retry_at - time.monotonic())
        if len(self._waiting) >= self._settings.max_waiting:
            raise AppBusy(self.id)
        waiter: asyncio.Future[Replica] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self.wake()
        try:
            async with asyncio.timeout(self._settings.start_timeout.total_seconds()):
                return await waiter
        except TimeoutError:
            raise StartTimeout(self.id) from None
        finally:
            self._waiting.remove(waiter)

    def _serve_waiting(self) -> None:
        replica = self._choose()
        if replica is None:
            return
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(replica)

    # The loop

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._step()
            except FlyteError as error:
                log.warning("app_step_failed", app=str(self.id), reason=error.message)
            self._tell()
            self._stepped.set()
            self._stepped = asyncio.Event()
            try:
                async with asyncio.timeout(self._next_step()):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _next_step(self) -> float | None:
        if self._waiting or self._starts or any(replica.lives for replica in self._replicas.values()):
            return _STEP_SECONDS
        if self._wanted():
            return max(self._retry_at - time.monotonic(), 0.01)
        return None

    async def _step(self) -> None:
        dirty, self._dirty = self._dirty, set()
        for number in dirty:
            replica = self._replicas.get(number)
            if replica is not None and replica.lives and number not in self._starts:
                await self._look(replica)
        if not self._is_told:
            return
        await self._end_surplus()
        await self._start_missing()
        await self._prune()
        self._serve_waiting()

    async def _look(self, replica: Replica) -> None:
        state = await self._around.processes.observe(replica.id, replica.row.nonce)
        if state.phase in (ProcessPhase.ABSENT, ProcessPhase.EXITED):
            await self._ended(replica, state)

    def _wanted(self) -> int:
        """Of the newest revision."""
        if self.stopped or self.definition is None:
            return 0
        needed = self._demand.replicas(self._limits, time.monotonic())
        unproven = self._proven != self.sha and self._failure is None
        needed = max(needed, 1 if unproven or self._waiting else 0)
        return min(needed, 1) if self._port_of_its_own else needed

    async def _end_surplus(self) -> None:
        newest = [r for r in self._replicas.values() if r.lives and r.row.sha == self.sha and r.phase is not _P.ENDING]
        older = [r for r in self._replicas.values() if r.lives and r.row.sha != self.sha and r.phase is not _P.ENDING]
        wanted = self._wanted()
        replaced = any(replica.serves for replica in newest) or self._must_yield(older)
        for replica in older:
            if self.stopped or replaced or not replica.serves:
                replica.turn(_P.ENDING, time.monotonic())
        for replica in sorted(newest, key=lambda r: (r.in_flight, -r.row.number))[: max(0, len(newest) - wanted)]:
            if self.stopped or (replica.serves and replica.in_flight == 0):
                replica.turn(_P.ENDING, time.monotonic())
        for replica in self._replicas.values():
            if replica.phase is _P.ENDING and not replica.stopping and self._may_end(replica):
                replica.stopping = True
                grace = self._settings.stop_grace.total_seconds()
                await self._around.processes.stop(replica.id, grace_seconds=grace)

    def _must_yield(self, older: list[Replica]) -> bool:
        """The new revision wants the port that the old one listens on by its own choice."""
        port = None if self.definition is None else program_of(self.definition.spec).port
        return any(replica.is_pinned and replica.port == port for replica in older)

    def _may_end(self, replica: Replica) -> bool:
        longest = self._settings.request_timeout.total_seconds()
        return self.stopped or replica.in_flight == 0 or time.monotonic() - replica.began > longest

    async def _start_missing(self) -> None:
        if self.definition is None or self.stopped or time.monotonic() < self._retry_at:
            return
        older = [r for r in self._replicas.values() if r.lives and r.row.sha != self.sha]
        if self._must_yield(older):
            return
        live = [r for r in self._replicas.values() if r.lives and r.row.sha == self.sha and r.phase is not _P.ENDING]
        for _ in range(self._wanted() - len(live)):
            await self._start(self.definition)

    # Replicas

    async def _start(self, definition: AppDefinition) -> None:
        row = ReplicaRow(
            app=self.id,
            number=max(self._replicas, default=0) + 1,
            revision=definition.revision,
            sha=definition.sha,
            nonce=uuid.uuid4().hex,
            port=free_port(),
            node=self._settings.node,
            created_at=self._around.clock.now(),
        )
        await self._around.database.write(lambda tx: tx.app_replicas.insert(row))
        replica = self._replicas[row.number] = Replica(row, _P.STARTING, row.port, began=time.monotonic())
        self._begin(replica, self._launch(replica, definition))

    def _begin(self, replica: Replica, start: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(start, name=f"start of {replica.id.name}")
        self._starts[replica.row.number] = task
        task.add_done_callback(lambda _: self._begun(replica))

    def _begun(self, replica: Replica) -> None:
        self._starts.pop(replica.row.number, None)
        self._dirty.add(replica.row.number)
        self.wake()

    async def _launch(self, replica: Replica, definition: AppDefinition) -> None:
        row = replica.row
        spec = replica_spec(definition, replica.id, nonce=row.nonce, port=row.port, settings=self._settings)
        try:
            await launch(self._around.processes, spec)
        except NotReady as problem:
            await self._failed(replica, str(problem))
            return
        await self._see_it_ready(replica)

    async def _see_it_ready(self, replica: Replica) -> None:
        declared = replica.row.port if self.definition is None else program_of(self.definition.spec).port
        try:
            await until_it_listens(
                self._around.processes,
                replica,
                declared_port=declared,
                timeout_seconds=self._settings.start_timeout.total_seconds(),
            )
        except NotReady as problem:
            await self._failed(replica, str(problem))
            return
        if replica.phase is not _P.STARTING:
            return
        replica.turn(_P.READY, time.monotonic())
        if not replica.row.ready:
            app, number = replica.row.app, replica.row.number
            await self._around.database.write(lambda tx: tx.app_replicas.mark_ready(app, number))
        self._proven = replica.row.sha
        self._port_of_its_own = replica.is_pinned
        if replica.row.sha == self.sha:
            self._failure = None
        self._serve_waiting()

    async def _failed(self, replica: Replica, problem: str) -> None:
        """It did not become ready: by its end, or in spite of being there."""
        if not problem:
            state = await self._around.processes.observe(replica.id, replica.row.nonce)
            await self._ended(replica, state)
            return
        await self._blame(replica, problem, out_of_memory=False)
        if replica.lives:
            replica.turn(_P.ENDING, time.monotonic())

    async def _ended(self, replica: Replica, state: ProcessState) -> None:
        wanted_to_end, served = replica.phase is _P.ENDING, replica.serves
        stable = served and time.monotonic() - replica.began > _STABLE_SECONDS
        replica.turn(_P.ENDED, time.monotonic())
        if wanted_to_end or replica.row.sha != self.sha or self.stopped:
            return
        if stable:
            self._failures = 0
        await self._blame(replica, _how(state), out_of_memory=state.out_of_memory)

    async def _blame(self, replica: Replica, problem: str, *, out_of_memory: bool) -> None:
        tail = await self._tail(replica.id)
        message = f"{replica.id.name}: {problem}{chr(10) if tail else ''}{tail}"
        log.warning("app_replica_failed", app=str(self.id), replica=replica.id.name, reason=problem)
        self._failures += 1
        delay = min(_FIRST_RETRY_SECONDS * 2 ** (self._failures - 1), _LONGEST_RETRY_SECONDS)
        self._retry_at = time.monotonic() + delay
        self._failure = Failure(
            message=message,
            since=from_micros(self._around.clock.now()),
            revision=replica.row.revision,
            out_of_memory=out_of_memory,
        )
        if any(other.serves for other in self._replicas.values()):
            return
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(AppFailed(self.id, message, retry_after=delay))

    async def _tail(self, replica: ReplicaId) -> str:
        """The end of its log."""
        position = await self._around.processes.tail_position(replica, lines=_TAIL_LINES)
        if position is None:
            return ""
        try:
            page = await self._around.processes.read(replica, position, limit_lines=_TAIL_LINES)
        except FlyteError:
            return ""
        return "".join(line.text for line in page.lines)[-_TAIL_CHARACTERS:].rstrip()

    async def _prune(self) -> None:
        ended = sorted(number for number, replica in self._replicas.items() if not replica.lives)
        for number in ended[: -self._settings.kept_logs or None]:
            await self._forget(self._replicas[number])

    async def _forget(self, replica: Replica) -> None:
        await self._around.processes.forget(replica.id)
        app, number = replica.row.app, replica.row.number
        await self._around.database.write(lambda tx: tx.app_replicas.remove(app, number))
        self._replicas.pop(number, None)

    # Status

    def _tell(self) -> None:
        if self.definition is None:
            return
        now = from_micros(self._around.clock.now())
        conditions = conditions_of(self._facts(self.definition), self.conditions, now)
        if conditions != self.conditions:
            self.conditions = conditions
            self._around.changed(self.id)

    def _facts(self, definition: AppDefinition) -> Facts:
        live = [replica for replica in self._replicas.values() if replica.lives]
        newest = [replica for replica in live if replica.row.sha == definition.sha]
        older = [replica.row.revision for replica in live if replica.row.sha != definition.sha and replica.serves]
        remark = "it listens on a port of its own choice, so there is one replica at most"
        return Facts(
            revision=definition.revision,
            stopped=self.stopped,
            proven=self._proven == definition.sha,
            ready=sum(1 for replica in newest if replica.serves),
            starting=sum(1 for replica in newest if replica.phase is _P.STARTING),
            ending=len(live),
            serving_revision=max(older, default=None),
            failure=self._failure,
            remark=remark if self._port_of_its_own else "",
        )


def _how(state: ProcessState) -> str:
    if state.reason:
        return state.reason
    if state.out_of_memory:
        return "it was killed because it used more memory than its limit"
    if state.exit_code is None:
        return "it is gone without a trace"
    if state.exit_code < 0:
        return f"it was killed by signal {-state.exit_code}"
    return f"it ended with exit code {state.exit_code}"
