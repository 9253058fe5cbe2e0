"""The executor as a whole: what wakes it, how it starts, and the way out of a standstill."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.control.controller import Controller
from flyte_binary.control.shards import Shards
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow, AttemptRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.errors import FlyteError
from flyte_binary.domain.ids import ActionId
from flyte_binary.executor.admission import Admission, Request
from flyte_binary.executor.backend import AttemptPhase, ExecutionBackend
from flyte_binary.executor.caching import Caching
from flyte_binary.executor.facts import Facts, RunFacts
from flyte_binary.executor.leftovers import Leftovers
from flyte_binary.executor.standstill import Standstill
from flyte_binary.executor.start import request_for
from flyte_binary.executor.waiting import Waiting
from flyte_binary.live.hub import Hub

log = structlog.get_logger(__name__)

_AGAIN_SECONDS = 1.0
LIVE = (AttemptPhase.STARTING, AttemptPhase.RUNNING)

_Found = tuple[ActionRow, Request | None, RunFacts | None]


class Executor:
    def __init__(
        self,
        *,
        database: Database,
        hub: Hub,
        backend: ExecutionBackend,
        controller: Controller[ActionId],
        admission: Admission,
        waiting: Waiting,
        caching: Caching,
        standstill: Standstill,
        leftovers: Leftovers,
        facts: Facts,
        shards: Shards,
    ) -> None:
        self._database = database
        self._hub = hub
        self._backend = backend
        self._controller = controller
        self._admission = admission
        self._waiting = waiting
        self._caching = caching
        self._standstill = standstill
        self._leftovers = leftovers
        self._facts = facts
        self._shards = shards
        self._taken = asyncio.Event()

    async def run(self, started: Callable[[], None] | None = None) -> None:
        """Work until cancelled. Attempts go on running; whoever starts next adopts them."""
        with self._hub.subscribe(topics.WORK) as work, self._hub.subscribe(topics.CACHE) as cache:
            await self._adopt()
            if started is not None:
                started()
            async with asyncio.TaskGroup() as group:
                for name, loop in (
                    ("executor-work", self._follow_work(work.wait)),
                    ("executor-cache", self._follow_cache(cache.wait)),
                    ("executor-backend", self._follow_backend()),
                    ("executor-standstill", self._standstill.watch()),
                    ("executor-shards", self._shards.run(self._taken.set, self._admission.shared_by)),
                    ("executor-adoption", self._follow_shards()),
                    ("executor-controller", self._controller.run()),
                ):
                    group.create_task(loop, name=name)

    async def _adopt(self) -> None:
        """Take over what is there: who waits for whom, what runs, what is owed."""
        unfinished, opened, ending = await self._database.read(self._found)
        ours = [attempt for attempt in opened if self._shards.lease_of(attempt.id.action) is not None]
        live = await self._live(ours)
        for request in [request for _, request, _ in unfinished] + [*ending]:
            if request is not None and request.action in live:
                self._admission.adopt(request)
        for row, _, run in unfinished:
            if run is not None:
                self._waiting.note(row, run)
        for key in {row.id for row, _, _ in unfinished} | {attempt.id.action for attempt in opened}:
            self._controller.queue.add(key)
        if ours:
            log.info("taking over", unfinished_actions=len(unfinished), live_attempts=len(live))

    def _found(self, tx: Transaction) -> tuple[list[_Found], list[AttemptRow], list[Request | None]]:
        """What is unfinished, what is owed, and what the ended ones of those asked for: they hold their share too."""
        unfinished = [self._with_facts(tx, row) for row in tx.actions.unfinished()]
        opened = tx.attempts.all_open()
        others = {attempt.id.action for attempt in opened} - {row.id for row, _, _ in unfinished}
        ended = [row for action in others if (row := tx.actions.get(action)) is not None]
        return unfinished, opened, [self._with_facts(tx, row)[1] for row in ended]

    def _with_facts(self, tx: Transaction, row: ActionRow) -> _Found:
        run = self._facts.run(tx, row.run_id)
        is_task = row.action_type == run_definition_pb2.ACTION_TYPE_TASK
        task = self._facts.task(tx, row) if is_task else None
        return row, request_for(row, task, run) if task is not None and run is not None else None, run

    async def _live(self, opened: list[AttemptRow]) -> set[ActionId]:
        live: set[ActionId] = set()
        for attempt in opened:
            state = await self._backend.observe(attempt.id, attempt.nonce)
            if state.phase in LIVE:
                live.add(attempt.id.action)
        return live

    async def _follow_work(self, wait: Callable[[], Awaitable[set[topics.Key]]]) -> None:
        while True:
            for project, domain, run, name in await wait():
                self._controller.queue.add(ActionId(project, domain, run, name))

    async def _follow_shards(self) -> None:
        while True:
            await self._taken.wait()
            self._taken.clear()
            try:
                await self._adopt()
            except FlyteError as error:
                log.warning("shards are not taken over yet", reason=str(error))
                await asyncio.sleep(_AGAIN_SECONDS)
                self._taken.set()

    async def _follow_cache(self, wait: Callable[[], Awaitable[set[topics.Key]]]) -> None:
        while True:
            for (key,) in await wait():
                for action in self._caching.released(key):
                    self._controller.queue.add(action)

    async def _follow_backend(self) -> None:
        async for attempt in self._backend.changed():
            self._leftovers.exists(attempt)
            self._controller.queue.add(attempt.action)

    def admission_is_open(self, is_open: bool) -> None:
        """Close or open the door; what runs goes on."""
        self._admission.closed = not is_open
        self._admission.serve(now=time.monotonic())
