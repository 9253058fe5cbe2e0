"""The start of an attempt: cache, reservation, admission, intent, launch."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.recovery import recovered_run
from flyte_binary.db.rows import ActionRow, AttemptRow, CacheRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import locations
from flyte_binary.executor.admission import Admission, Request
from flyte_binary.executor.backend import AttemptPhase, AttemptState, ExecutionBackend
from flyte_binary.executor.caching import HIT, CachePlan, Caching, plan_for, reserve
from flyte_binary.executor.compatibility import RuntimeOf, check_runtime
from flyte_binary.executor.conclude import Concluder
from flyte_binary.executor.facts import RunFacts, TaskFacts, resources_for
from flyte_binary.executor.task_types import CannotRun, Machine, image_of, make_attempt
from flyte_binary.executor.timing import LOOK_AGAIN_SECONDS, first_look
from flyte_binary.executor.transitions import cache_hit, intend_launch, now_running, recover_traces, wait_for_cache

_PREPARING_SECONDS = 1.0
"""Between two looks whether the environment of an image is there."""


_FULL_SECONDS = 0.5
"""How soon to look again whether another server has left a place in the run."""


@dataclass(frozen=True, slots=True)
class _Cached:
    """What the cache means for a start."""

    go_on: bool = False
    look_again: float | None = None
    """Seconds after which to ask again without a hint."""


class Starter:
    def __init__(
        self,
        *,
        database: Database,
        backend: ExecutionBackend,
        admission: Admission,
        caching: Caching,
        concluder: Concluder,
        clock: Clock,
        node: str,
        alone: bool,
        log_limit_bytes: int,
        runtime_of: RuntimeOf,
    ) -> None:
        self._database = database
        self._backend = backend
        self._admission = admission
        self._caching = caching
        self._concluder = concluder
        self._clock = clock
        self._node = node
        self._alone = alone
        self._log_limit_bytes = log_limit_bytes
        self._runtime_of = runtime_of
        self.launches = 0
        """Since the start of the server."""

    async def start(self, row: ActionRow, task: TaskFacts, run: RunFacts) -> float | None:
        """One pass of an action that has no launched attempt."""
        held_back = self._held_back(row)
        if held_back is not None:
            self._admission.release(row.id, now=time.monotonic())
            return held_back
        plan = plan_for(row, task, run)
        if plan is not None:
            cached = await self._from_cache(row, plan)
            if not cached.go_on:
                return cached.look_again
        if not self._admission.admit(request_for(row, task, run)):
            return None
        return await self._launch(row, task, run)

    def _held_back(self, row: ActionRow) -> float | None:
        if row.not_before is None:
            return None
        left = row.not_before - self._clock.now()
        return left / 1_000_000 if left > 0 else None

    async def _from_cache(self, row: ActionRow, plan: CachePlan) -> _Cached:
        entry = await self._database.point(lambda tx: tx.cache.get(plan.key))
        now = self._clock.now()
        prefix = await self._caching.usable(entry, plan, now=now)
        if prefix is not None:
            await self._database.write(lambda tx: cache_hit(tx, row, prefix, HIT, at=now), run=row.run_id)
            return _Cached()
        if not plan.serializable:
            return _Cached(go_on=True)
        self._caching.wait_for(plan.key, row.id)
        return await self._database.write(lambda tx: _reserve(tx, row, plan, entry, now), run=row.run_id)

    async def _launch(self, row: ActionRow, task: TaskFacts, run: RunFacts) -> float | None:
        nonce = secrets.token_hex(8)
        try:
            template = task.spec.task_template
            runtime = await self._runtime_of(image_of(template))
            if runtime.preparing:
                self._admission.release(row.id, now=time.monotonic())
                return _PREPARING_SECONDS
            check_runtime(template, runtime.python, runtime.flyte)
            spec = make_attempt(
                row,
                task,
                run,
                nonce=nonce,
                log_limit_bytes=self._log_limit_bytes,
                machine=self._machine(),
            )
        except CannotRun as reason:
            self._admission.release(row.id, now=time.monotonic())
            await self._concluder.cannot_run(row, str(reason))
            return None
        attempt = AttemptRow(
            id=spec.id,
            nonce=nonce,
            node=self._node,
            output_prefix=locations.attempt_prefix(row.run_output_base, row.id.name, row.attempts),
            launched_at=self._clock.now(),
        )
        limit = 0 if self._alone else run.run_spec.max_action_concurrency
        if limit and await self._is_full_elsewhere(row, limit):
            self._admission.release(row.id, now=time.monotonic())
            return _FULL_SECONDS
        launched = await self._database.write(lambda tx: _intend(tx, row, attempt, limit), run=row.run_id)
        if launched is None:
            # Somebody was faster (an abort, most likely); the hint brings the pass back.
            self._admission.release(row.id, now=time.monotonic())
            return None
        await self._backend.launch(spec)
        self.launches += 1
        state = await self._backend.observe(attempt.id, nonce)
        if state.phase is not AttemptPhase.RUNNING:
            return 0.2
        now = self._clock.now()
        await self._database.write(lambda tx: now_running(tx, launched, attempt, state, at=now), run=row.run_id)
        return first_look(task.limits, at_most=LOOK_AGAIN_SECONDS)

    async def _is_full_elsewhere(self, row: ActionRow, limit: int) -> bool:
        """Admission knows what this server has started of the run, but not what others have."""
        return await self._database.point(lambda tx: tx.actions.active(row.run_id)) >= limit

    async def launch_again(self, row: ActionRow, task: TaskFacts, run: RunFacts, attempt: AttemptRow) -> AttemptState:
        """The intent is committed and nothing runs: launch, which for a lost attempt does nothing."""
        spec = make_attempt(
            row,
            task,
            run,
            nonce=attempt.nonce,
            log_limit_bytes=self._log_limit_bytes,
            machine=self._machine(),
        )
        self._admission.adopt(request_for(row, task, run))
        await self._backend.launch(spec)
        return await self._backend.observe(attempt.id, attempt.nonce)

    def _machine(self) -> Machine:
        return Machine(cores=self._admission.cores, memory_bytes=self._admission.memory_bytes)


def request_for(row: ActionRow, task: TaskFacts, run: RunFacts) -> Request:
    """What an action asks of the node."""
    resources = resources_for(task, run)
    return Request(
        action=row.id,
        cores=resources.cores,
        memory_bytes=resources.memory_bytes,
        named=resources.asked,
        run_limit=run.run_spec.max_action_concurrency,
        asked_at=time.monotonic(),
    )


def _intend(tx: Transaction, row: ActionRow, attempt: AttemptRow, limit: int) -> ActionRow | None:
    """The row as it is after the intent, None if it had moved on, or if `limit` (0: none) actions of the run are active
    by now: whoever takes the last place holds the root's row until it is taken."""
    if limit:
        tx.actions.lock(row.run_id.root())
        if tx.actions.active(row.run_id) >= limit:
            tx.changed_action(row.id, None)
            return None
    if not intend_launch(tx, row, attempt, at=attempt.launched_at):
        return None
    if row.attempts == 1:
        root = tx.actions.get(row.run_id.root())
        origin = None if root is None else recovered_run(root)
        if origin is not None:
            recover_traces(tx, row, *origin, at=attempt.launched_at)
    return tx.actions.get(row.id)


def _reserve(tx: Transaction, row: ActionRow, plan: CachePlan, entry: CacheRow | None, now: int) -> _Cached:
    """An entry that appeared since the look-up is looked at again, by the hint it comes with."""
    current = tx.cache.get(plan.key)
    if (current is None) != (entry is None) or (current and entry and current.updated_at != entry.updated_at):
        tx.changed_action(row.id, row.parent)
        return _Cached()
    held = reserve(tx, plan, row.id, now=now)
    if held is None:
        return _Cached(go_on=True)
    wait_for_cache(tx, row, at=now)
    # What an action holds is given back with a hint; an owner outside may just cease to beat.
    return _Cached(look_again=None if held.expires_at is None else (held.expires_at - now) / 1_000_000)
