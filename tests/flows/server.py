"""An executor and its parts over given surroundings: what a test starts, stops, kills and starts again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from flyte_binary.control.clock import Clock
from flyte_binary.control.controller import Controller
from flyte_binary.control.shards import EveryShard, Shards
from flyte_binary.db.database import Database
from flyte_binary.domain.callbacks import CallbackAddresses
from flyte_binary.domain.ids import ActionId
from flyte_binary.executor.admission import Admission
from flyte_binary.executor.archive import LogArchiver
from flyte_binary.executor.caching import Caching
from flyte_binary.executor.compatibility import Runtime
from flyte_binary.executor.conclude import Caps, Concluder
from flyte_binary.executor.conditions import Conditions
from flyte_binary.executor.executor import Executor
from flyte_binary.executor.facts import Facts
from flyte_binary.executor.family import Family
from flyte_binary.executor.leftovers import Leftovers
from flyte_binary.executor.reconciler import Reconciler
from flyte_binary.executor.results import ResultReader
from flyte_binary.executor.sharded import ShardedReconciler
from flyte_binary.executor.standstill import Standstill
from flyte_binary.executor.start import Starter
from flyte_binary.executor.waiting import Waiting
from flyte_binary.executor.webhooks import Webhooks
from flyte_binary.live.hub import Hub
from flyte_binary.runs.artifacts.produced import publish_produced
from flyte_binary.storage.store import ObjectStore
from tests.fakes.backend import MemoryBackend

GIB = 1024**3


class Server:
    """One life of an executor."""

    def __init__(
        self,
        database: Database,
        hub: Hub,
        backend: MemoryBackend,
        store: ObjectStore,
        clock: Clock,
        *,
        cores: float,
        memory_bytes: int,
        caps: Caps,
        shards: Shards | None = None,
        alone: bool = True,
        cache_across_projects: bool = False,
    ) -> None:
        shards = shards or EveryShard()
        facts = Facts(cache_across_projects=cache_across_projects)
        caching = Caching(store)
        self.controller: Controller[ActionId] = Controller(
            "executor", lambda key: self.sharded.reconcile(key), workers=4
        )
        self.admission = Admission(cores=cores, memory_bytes=memory_bytes, wake=self.controller.queue.add)
        self.standstill = Standstill(database, backend, self.admission)
        waiting = Waiting(self.admission, Family())
        results = ResultReader(store, backend)
        concluder = Concluder(database, results, clock, caps, _runtime_of, publish_produced)
        self.leftovers = Leftovers(database, backend, LogArchiver(store, backend), clock, stop_grace_seconds=5)
        starter = Starter(
            database=database,
            backend=backend,
            admission=self.admission,
            caching=caching,
            concluder=concluder,
            clock=clock,
            node="here",
            alone=alone,
            log_limit_bytes=1024,
            runtime_of=_runtime_of,
        )
        self.reconciler = Reconciler(
            database=database,
            backend=backend,
            admission=self.admission,
            waiting=waiting,
            starter=starter,
            concluder=concluder,
            leftovers=self.leftovers,
            conditions=Conditions(
                database, clock, Webhooks(CallbackAddresses(key=b"key", base_url="http://127.0.0.1:1"))
            ),
            facts=facts,
            clock=clock,
            node="here",
        )
        self.sharded = ShardedReconciler(
            self.reconciler,
            shards,
            database=database,
            admission=self.admission,
            waiting=waiting,
            leftovers=self.leftovers,
            facts=facts,
        )
        self.executor = Executor(
            database=database,
            hub=hub,
            backend=backend,
            controller=self.controller,
            admission=self.admission,
            waiting=waiting,
            caching=caching,
            standstill=self.standstill,
            leftovers=self.leftovers,
            facts=facts,
            shards=shards,
        )
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when it has taken over what there was."""
        started = asyncio.Event()
        self._running = asyncio.create_task(self.executor.run(started.set), name="executor")
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait({self._running, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=5)
        waiting.cancel()
        if self._running.done():
            await self._running
        assert started.is_set()

    async def stop(self) -> None:
        """As at SIGTERM."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running}, timeout=5)

    async def kill(self, keep: Iterable[asyncio.Task[object]] = ()) -> None:
        """As at `kill -9`: nothing that it does is finished. `keep` are the test's own tasks.

        The database's own go on, since the next life uses it too.
        """
        database = {task for task in asyncio.all_tasks() if task.get_name().startswith("postgres-")}
        mine = asyncio.all_tasks() - {asyncio.current_task(), *database, *keep}
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)


async def _runtime_of(_image: str) -> Runtime:
    return Runtime(python="3.11", flyte="2.12.1")
