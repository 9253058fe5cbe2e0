"""The end of an attempt: read what it left, judge it, write the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from flyteidl2.core import execution_pb2
from flyteidl2.task import common_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow, AttemptRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.ids import AttemptId
from flyte_binary.executor.backend import AttemptState
from flyte_binary.executor.caching import plan_for
from flyte_binary.executor.compatibility import RuntimeOf
from flyte_binary.executor.facts import RunFacts, TaskFacts
from flyte_binary.executor.import_hints import lacks_module, with_import_hint
from flyte_binary.executor.results import ResultReader
from flyte_binary.executor.task_types import image_of
from flyte_binary.executor.timing import Expired
from flyte_binary.executor.transitions import Conclusion, conclude, fail_before_launch, time_out
from flyte_binary.executor.verdict import Budget, Failures, Outcome, after_timeout, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How many failures the server lets an action have, by whose fault."""

    retries: int = 100
    system_failures: int = 3
    infrastructure_failures: int = 10


class PublishProduced(Protocol):
    def __call__(self, tx: Transaction, outputs: common_pb2.Outputs, attempt: AttemptId, *, at: int) -> list[str]:
        """Make versions of artifacts of what the outputs declare; a sentence for each that came to nothing."""
        ...


class Concluder:
    def __init__(
        self,
        database: Database,
        results: ResultReader,
        clock: Clock,
        caps: Caps,
        runtime_of: RuntimeOf,
        publish_produced: PublishProduced,
    ) -> None:
        self._database = database
        self._publish_produced = publish_produced
        self._results = results
        self._clock = clock
        self._caps = caps
        self._runtime_of = runtime_of

    async def conclude(
        self, row: ActionRow, attempt: AttemptRow, state: AttemptState, task: TaskFacts, run: RunFacts
    ) -> Outcome | None:
        """None if the row had moved on meanwhile and nothing was written.

        The executor is not woken for an action that ended: the caller does what is left.
        """
        metadata = task.spec.task_template.metadata
        results = await self._results.read(
            attempt.id, attempt.output_prefix, state, reports=metadata.generates_deck.value
        )
        verdict = judge(
            state,
            results.error,
            has_outputs=results.has_outputs,
            log_tail=results.log_tail,
            budget=self._budget(row, task),
        )
        if verdict.error is not None and lacks_module(verdict.error):
            verdict = replace(verdict, error=await self._hinted(verdict.error, task))
        now = self._clock.now()
        publishes = metadata.produces_artifacts and verdict.outcome is Outcome.SUCCEED
        end = Conclusion(
            row=row,
            attempt=attempt,
            state=state,
            verdict=verdict,
            has_report=results.has_report,
            cache=plan_for(row, task, run),
            publish=await self._publication(attempt, now) if publishes else None,
        )
        written = await self._database.write(lambda tx: conclude(tx, end, at=now), run=row.run_id)
        return verdict.outcome if written else None

    async def _publication(self, attempt: AttemptRow, now: int) -> Callable[[Transaction], list[str]] | None:
        """What is left to do for the artifacts among the outputs, in the transaction that ends the action."""
        outputs = await self._results.outputs(attempt.output_prefix)
        if isinstance(outputs, str):
            return lambda _tx: [outputs]
        if not outputs.produced_artifacts:
            return None
        return lambda tx: self._publish_produced(tx, outputs, attempt.id, at=now)

    async def time_out(self, row: ActionRow, attempt: AttemptRow | None, task: TaskFacts, over: Expired) -> None:
        verdict = after_timeout(over.timeout, over.limit, self._budget(row, task))
        now = self._clock.now()
        await self._database.write(lambda tx: time_out(tx, row, attempt, verdict, at=now), run=row.run_id)

    async def cannot_run(self, row: ActionRow, reason: str) -> None:
        error = execution_pb2.ExecutionError(
            code="BadTaskSpecification", message=reason, kind=execution_pb2.ExecutionError.USER
        )
        now = self._clock.now()
        await self._database.write(lambda tx: fail_before_launch(tx, row, error, at=now), run=row.run_id)

    async def _hinted(self, error: execution_pb2.ExecutionError, task: TaskFacts) -> execution_pb2.ExecutionError:
        image = image_of(task.spec.task_template)
        return with_import_hint(error, image, await self._runtime_of(image))

    def _budget(self, row: ActionRow, task: TaskFacts) -> Budget:
        return Budget(
            failures=Failures(
                user=row.user_failures, system=row.system_failures, infrastructure=row.infrastructure_failures
            ),
            limits=task.limits,
            max_retries=self._caps.retries,
            max_system_failures=self._caps.system_failures,
            max_infrastructure_failures=self._caps.infrastructure_failures,
        )
