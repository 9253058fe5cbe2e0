"""A whole server without its front: the real database, hub and executor over a backend and a store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from flyteidl2.actions import actions_service_pb2
from flyteidl2.core import execution_pb2, types_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2, state_service_pb2

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.enqueue import Enqueuer
from flyte_binary.actions.signal import Signaller
from flyte_binary.actions.updates import Updates
from flyte_binary.db.rows import ActionRow, AttemptRow
from flyte_binary.db.tasks import digest_of
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import locations, topics
from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.domain.phases import Phase
from flyte_binary.executor.conclude import Caps
from flyte_binary.live.hub import Hub
from flyte_binary.storage.store import ObjectInfo
from tests.db_fixtures import SQLITE, Storage
from tests.fakes.backend import MemoryBackend, Process
from tests.fakes.clock import SleepyClock
from tests.fakes.faults import Faults, FaultyDatabase
from tests.fakes.memory_store import MemoryStore
from tests.flows.server import GIB, Server
from tests.flows.tasks import task

DEADLINE_SECONDS = 10
RUN = RunId("flytesnacks", "development", "r1")
KIND = SQLITE
"""Of the database that worlds are made on; set for each test by `conftest.py`."""


class FaultyStore(MemoryStore):
    """The executor's way to the store; may go wrong."""

    def __init__(self, store: MemoryStore, faults: Faults) -> None:
        super().__init__()
        self.objects = store.objects
        self._faults = faults

    async def put(self, uri: str, data: bytes) -> None:
        await self._faults.around("put", lambda: super(FaultyStore, self).put(uri, data))

    async def stat(self, uri: str, *, with_md5: bool = False) -> ObjectInfo | None:
        return await self._faults.around("stat", lambda: super(FaultyStore, self).stat(uri, with_md5=with_md5))


class World:
    def __init__(self, storage: Storage, *, cores: float, memory_bytes: int, caps: Caps) -> None:
        self.clock = SleepyClock()
        self.hub = Hub()
        self.store = MemoryStore()
        self.faults = Faults()
        self.database = storage.open(self.hub.publish)
        self.backend = MemoryBackend(self.store, self.clock, self.faults)
        self.enqueuer = Enqueuer(self.database, self.store, self.clock)
        self.aborter = Aborter(self.database, self.clock)
        self.signaller = Signaller(self.database, self.clock)
        self.updates = Updates(self.database, self.hub)
        self._cores, self._memory_bytes, self._caps = cores, memory_bytes, caps
        self._watching: set[asyncio.Task[object]] = set()
        self.server = self._new_server()

    def _new_server(self) -> Server:
        return Server(
            FaultyDatabase(self.database, self.faults),
            self.hub,
            self.backend,
            FaultyStore(self.store, self.faults),
            self.clock,
            cores=self._cores,
            memory_bytes=self._memory_bytes,
            caps=self._caps,
        )

    # What users and tasks do.

    async def create(
        self,
        spec: task_definition_pb2.TaskSpec | None = None,
        *,
        run: RunId = RUN,
        run_spec: task_run_pb2.RunSpec | None = None,
        cache_key: str = "",
    ) -> ActionId:
        """What CreateRun commits."""
        digest, body = digest_of(spec or task("env.main"))
        run_spec = run_spec or task_run_pb2.RunSpec()
        now = self.clock.now()
        row = ActionRow(
            id=run.root(),
            parent=None,
            phase=Phase.QUEUED,
            action_type=run_definition_pb2.ACTION_TYPE_TASK,
            task_type="python",
            short_name="main",
            spec_digest=digest,
            input_uri=f"/store/{run.name}/inputs.pb",
            run_output_base=f"/store/{run.name}",
            cache_key=cache_key,
            run_spec=run_spec.SerializeToString(),
            relation=run_spec.relation.SerializeToString() if run_spec.HasField("relation") else None,
            created_at=now,
            updated_at=now,
            queued_at=now,
        )

        def operation(tx: Transaction) -> None:
            tx.specs.put(digest, body, at=now)
            assert tx.actions.insert(row)
            tx.changed_action(row.id, None)

        await self.database.write(operation, run=run)
        return row.id

    def _child(self, name: str, parent: str, run: RunId) -> actions_service_pb2.Action:
        return actions_service_pb2.Action(
            action_id=run.action(name).to_proto(),
            parent_action_name=parent,
            input_uri=f"/store/{run.name}/{name}/inputs.pb",
            run_output_base=f"/store/{run.name}",
        )

    async def enqueue(
        self,
        name: str,
        spec: task_definition_pb2.TaskSpec | None = None,
        *,
        parent: str = "a0",
        run: RunId = RUN,
        cache_key: str = "",
    ) -> ActionId:
        action = self._child(name, parent, run)
        action.task.spec.CopyFrom(spec or task())
        if cache_key:
            action.task.cache_key.value = cache_key
        await self.enqueuer.enqueue(action)
        return run.action(name)

    async def trace(self, name: str, *, failed: bool = False, recoverable: bool = True, run: RunId = RUN) -> ActionId:
        action = self._child(name, "a0", run)
        trace = action.trace
        trace.name = name
        trace.phase = Phase.FAILED if failed else Phase.SUCCEEDED  # pyright: ignore[reportAttributeAccessIssue]
        if failed:
            kinds = execution_pb2.ContainerError
            error = kinds(code="ValueError", message="in a trace", origin=execution_pb2.ExecutionError.USER)
            error.kind = kinds.RECOVERABLE if recoverable else kinds.NON_RECOVERABLE
            uri = locations.join(action.run_output_base, name, locations.ERROR)
            self.store.objects[uri] = execution_pb2.ErrorDocument(error=error).SerializeToString()
        else:
            trace.outputs.output_uri = f"/store/{run.name}/{name}/outputs.pb"
        await self.enqueuer.enqueue(action)
        return run.action(name)

    async def condition(
        self,
        name: str,
        *,
        simple: types_pb2.SimpleType = types_pb2.BOOLEAN,
        timeout_seconds: float = 0,
        parent: str = "a0",
        run: RunId = RUN,
    ) -> ActionId:
        action = self._child(name, parent, run)
        action.condition.name = name
        action.condition.type.simple = simple
        if timeout_seconds:
            action.condition.timeout.FromNanoseconds(int(timeout_seconds * 1e9))
        await self.enqueuer.enqueue(action)
        return run.action(name)

    # Looking and waiting.

    async def row(self, action: ActionId) -> ActionRow:
        row = await self.database.read(lambda tx: tx.actions.get(action))
        assert row is not None, f"there is no action {action}"
        return row

    async def attempts(self, action: ActionId) -> list[AttemptRow]:
        return await self.database.read(lambda tx: tx.attempts.of_action(action))

    async def events(self, action: ActionId) -> list[run_definition_pb2.ActionEvent]:
        rows = await self.database.read(lambda tx: tx.events.of_action(action))
        return [run_definition_pb2.ActionEvent.FromString(row.info) for row in rows]

    async def phase(self, action: ActionId, *phases: Phase) -> ActionRow:
        """Wait until the action is in one of the phases."""
        with self.hub.subscribe(topics.run(action.run_id)) as changes:
            try:
                async with asyncio.timeout(DEADLINE_SECONDS):
                    while (row := await self.row(action)).phase not in phases:
                        await changes.wait()
            except TimeoutError:
                raise AssertionError(f"{action} is {row.phase.name}, not {[p.name for p in phases]}") from None
        return row

    async def running(self, action: ActionId, attempt: int = 1) -> Process:
        async with asyncio.timeout(DEADLINE_SECONDS):
            with self.hub.subscribe(topics.run(action.run_id)) as changes:
                while True:
                    row = await self.row(action)
                    if row.attempts == attempt and row.phase == Phase.RUNNING:
                        return self.backend.processes[action.attempt(attempt)]
                    await changes.wait()

    async def idle(self) -> None:
        """Wait until nothing is left to do but what timers or others will bring."""
        queue = self.server.controller.queue
        still = 0
        async with asyncio.timeout(DEADLINE_SECONDS):
            while still < 20:
                still = still + 1 if queue.idle else 0
                await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let time pass: every timer of the executor is due and looks at the clock."""
        self.clock.advance(seconds=seconds)
        await self.look_again()

    async def look_again(self) -> None:
        await self.idle()
        unfinished, opened = await self.database.read(lambda tx: (tx.actions.unfinished(), tx.attempts.all_open()))
        for action in {row.id for row in unfinished} | {attempt.id.action for attempt in opened}:
            self.server.controller.queue.add(action)
        await self.idle()

    @asynccontextmanager
    async def watching(self, parent: ActionId) -> AsyncIterator[Watched]:
        """Follow the children of `parent` as its runtime does; entered after the snapshot."""
        watched = Watched()

        async def follow() -> None:
            async for update in self.updates.watch(parent):
                watched.add(update)

        task = asyncio.create_task(follow(), name="watch")
        self._watching.add(task)
        try:
            await watched.until(lambda: watched.snapshot is not None)
            yield watched
        finally:
            task.cancel()
            await asyncio.wait({task})
            self._watching.discard(task)

    # Lives and deaths.

    async def restart(self, *, kill: bool = True) -> None:
        await (self.server.kill(keep=self._watching) if kill else self.server.stop())
        # What was handed to the database before is committed by the time this is.
        await self.database.write(lambda tx: None)
        self.server = self._new_server()
        await self.server.start()

    async def close(self) -> None:
        await self.server.stop()
        await self.database.close()


class Watched:
    def __init__(self) -> None:
        self.snapshot: list[state_service_pb2.ActionUpdate] | None = None
        self.followed: list[state_service_pb2.ActionUpdate] = []
        self._before: list[state_service_pb2.ActionUpdate] = []
        self._event = asyncio.Event()

    def add(self, update: state_service_pb2.ActionUpdate | None) -> None:
        if update is None:
            if self.snapshot is None:
                self.snapshot = self._before
        elif self.snapshot is None:
            self._before.append(update)
        else:
            self.followed.append(update)
        self._event.set()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                self._event.clear()
                await self._event.wait()

    def of(self, name: str) -> list[state_service_pb2.ActionUpdate]:
        """What was told of an action, from the snapshot on."""
        return [update for update in [*(self.snapshot or []), *self.followed] if update.action_id.name == name]

    async def phase_of(self, name: str, phase: Phase) -> state_service_pb2.ActionUpdate:
        """Wait for the last word on an action to be this phase."""
        await self.until(lambda: self.of(name) and self.of(name)[-1].phase == phase)
        return self.of(name)[-1]


@asynccontextmanager
async def world_in(
    folder: Path, *, cores: float = 4, memory_bytes: int = GIB, caps: Caps | None = None, started: bool = True
) -> AsyncIterator[World]:
    world = World(Storage(KIND, folder), cores=cores, memory_bytes=memory_bytes, caps=caps or Caps())
    if started:
        await world.server.start()
    try:
        yield world
    finally:
        await world.close()
