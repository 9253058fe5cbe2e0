"""One pass over one action: look at what is, decide, write one guarded transition.

The key is the only input. A pass may run twice, late or after a crash and ends the same; whatever
it decided is dropped if the row has moved on meanwhile.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from flyteidl2.workflow import run_definition_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow, AttemptRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.task_limits import NO_LIMIT
from flyte_binary.executor.admission import Admission
from flyte_binary.executor.backend import AttemptPhase, AttemptState, ExecutionBackend
from flyte_binary.executor.conclude import Concluder
from flyte_binary.executor.conditions import Conditions
from flyte_binary.executor.facts import Facts, RunFacts, TaskFacts
from flyte_binary.executor.leftovers import Leftovers
from flyte_binary.executor.start import Starter, request_for
from flyte_binary.executor.timing import (
    LOOK_AGAIN_SECONDS,
    began_at,
    expired,
    first_look,
    running_limits,
    seconds_to_next,
    soonest,
)
from flyte_binary.executor.transitions import now_running
from flyte_binary.executor.verdict import Outcome
from flyte_binary.executor.waiting import Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a pass reads, in one snapshot."""

    row: ActionRow
    open_attempts: list[AttemptRow]
    task: TaskFacts | None
    run: RunFacts
    began_at: int
    """When the action was first queued with its present budget of attempts."""

    def current(self) -> AttemptRow | None:
        """The launched attempt that the row is at, if it is not over yet."""
        return next((one for one in self.open_attempts if one.id.number == self.row.attempts), None)

    def leftovers(self) -> list[AttemptRow]:
        """Attempts that are over as far as the row goes, and still owe something."""
        if self.row.terminal:
            return self.open_attempts
        return [one for one in self.open_attempts if one.id.number < self.row.attempts]


class Reconciler:
    def __init__(
        self,
        *,
        database: Database,
        backend: ExecutionBackend,
        admission: Admission,
        waiting: Waiting,
        starter: Starter,
        concluder: Concluder,
        leftovers: Leftovers,
        conditions: Conditions,
        facts: Facts,
        clock: Clock,
        node: str,
    ) -> None:
        """`node` is where this server's attempts run; those of another are lost with it."""
        self._node = node
        self._database = database
        self._backend = backend
        self._admission = admission
        self._waiting = waiting
        self._starter = starter
        self._concluder = concluder
        self._leftovers = leftovers
        self._conditions = conditions
        self._facts = facts
        self._clock = clock

    async def reconcile(self, action: ActionId) -> float | None:
        """Returns after how many seconds to come back, None if only a change can bring news."""
        view = await self._database.point(lambda tx: self._load(tx, action))
        if view is None:
            self._admission.release(action, now=time.monotonic())
            return (await self._leftovers.settle(action, [], [])).look_again
        self._waiting.note(view.row, view.run)
        owed = await self._leftovers.settle(action, view.open_attempts, view.leftovers())
        if view.row.terminal:
            if not owed.alive:
                self._admission.release(action, now=time.monotonic())
            return owed.look_again
        if view.row.action_type == run_definition_pb2.ACTION_TYPE_CONDITION:
            return await self._conditions.reconcile(view.row)
        if not view.row.run_output_base:
            # An executor outside this server runs it and reports its states (InternalRunService.RecordAction).
            return None
        if view.task is None:
            await self._concluder.cannot_run(view.row, "the task's specification is missing from the database")
            return None
        return soonest(owed.look_again, await self._reconcile_task(view, view.task, blocked=owed.alive))

    async def _reconcile_task(self, view: View, task: TaskFacts, *, blocked: bool) -> float | None:
        """`blocked` while a process of an earlier attempt still runs: the next one is not launched beside it."""
        current = view.current()
        state = None if current is None else await self._observe(current)
        limits = running_limits(view.row, current, task.limits, began_at=view.began_at)
        over = expired(limits, self._clock)
        # What has ended, ended as it did, however late that is found (after a restart of the server).
        if over is not None and (state is None or state.phase is not AttemptPhase.EXITED):
            await self._concluder.time_out(view.row, current, task, over)
            return None
        next_limit = seconds_to_next(limits, self._clock)
        if current is not None and state is not None:
            return soonest(next_limit, await self._follow(view, task, current, state))
        if blocked:
            return next_limit
        return soonest(next_limit, await self._starter.start(view.row, task, view.run))

    async def _follow(self, view: View, task: TaskFacts, attempt: AttemptRow, state: AttemptState) -> float | None:
        here = attempt.node == self._node
        if state.phase is AttemptPhase.ABSENT and view.row.phase == Phase.INITIALIZING and here:
            # Either the server fell between the intent and the launch, or the attempt is lost: the
            # launch tells, since the same nonce is never launched twice.
            state = await self._starter.launch_again(view.row, task, view.run, attempt)
        match state.phase:
            case AttemptPhase.STARTING:
                return 1.0
            case AttemptPhase.RUNNING:
                await self._running(view.row, task, view.run, attempt, state)
                if view.row.phase == Phase.INITIALIZING:
                    return first_look(task.limits, at_most=LOOK_AGAIN_SECONDS)
                return LOOK_AGAIN_SECONDS
            case AttemptPhase.ABSENT | AttemptPhase.EXITED:
                # The process is gone, and its share free, before the outcome is even read.
                self._admission.release(view.row.id, now=time.monotonic())
                return await self._conclude(view, task, attempt, state)

    async def _observe(self, attempt: AttemptRow) -> AttemptState:
        if attempt.node != self._node:
            return AttemptState(phase=AttemptPhase.ABSENT)
        return await self._backend.observe(attempt.id, attempt.nonce)

    async def _conclude(self, view: View, task: TaskFacts, attempt: AttemptRow, state: AttemptState) -> float | None:
        """What follows from an end is done at once, rather than in the pass that a hint would bring."""
        outcome = await self._concluder.conclude(view.row, attempt, state, task, view.run)
        if outcome is None:
            return None
        if outcome is not Outcome.RETRY:
            self._waiting.note_end(view.row, view.run)
        return await self._leftovers.close_concluded(attempt)

    async def _running(
        self, row: ActionRow, task: TaskFacts, run: RunFacts, attempt: AttemptRow, state: AttemptState
    ) -> None:
        self._admission.adopt(request_for(row, task, run))
        if row.phase != Phase.INITIALIZING:
            return
        now = self._clock.now()
        await self._database.write(lambda tx: now_running(tx, row, attempt, state, at=now), run=row.run_id)

    def _load(self, tx: Transaction, action: ActionId) -> View | None:
        row = tx.actions.get(action)
        if row is None:
            return None
        run = self._facts.run(tx, action.run_id)
        if run is None:
            return None
        is_task = row.action_type == run_definition_pb2.ACTION_TYPE_TASK
        task = self._facts.task(tx, row) if is_task and not row.terminal else None
        has_deadline = task is not None and task.limits.deadline > NO_LIMIT
        return View(
            row=row,
            open_attempts=tx.attempts.open_of_action(action) if is_task else [],
            task=task,
            run=run,
            began_at=began_at(row, tx.events.of_action) if has_deadline else row.created_at,
        )
