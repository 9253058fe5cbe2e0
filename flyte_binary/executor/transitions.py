"""The executor's writes: synchronous, guarded by the row's version, each with its event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any  # column values have many types

from flyteidl2.core import execution_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.db import moves
from flyte_binary.db.rows import ActionRow, AttemptRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.action_events import make_event
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.phases import SUCCESSFUL, Phase
from flyte_binary.domain.timestamps import from_micros, to_micros, to_proto
from flyte_binary.executor.backend import AttemptState
from flyte_binary.executor.caching import POPULATED, CachePlan, remember
from flyte_binary.executor.verdict import Outcome, Verdict

TRACE = run_definition_pb2.ACTION_TYPE_TRACE
_RECOVERABLE = execution_pb2.ContainerError.RECOVERABLE


def intend_launch(tx: Transaction, row: ActionRow, attempt: AttemptRow, *, at: int) -> bool:
    """Commit the intent before the launch. A later attempt of a parent starts with a clean family:
    what failed below the last one is superseded."""
    queued = make_event(row.id, row.attempts, Phase.QUEUED, at=row.queued_at, version=row.version)
    event = make_event(
        row.id, row.attempts, Phase.INITIALIZING, at=at, version=row.version, prefix=attempt.output_prefix
    )
    # The pass that launches goes on to observe; a later attempt is looked at once more, because its
    # family may have lived on.
    if not moves.move(tx, row, Phase.INITIALIZING, at=at, event=event, wake=row.attempts > 1):
        return False
    moves.record(tx, queued)
    tx.attempts.insert(attempt)
    if row.attempts > 1:
        _supersede_failed_children(tx, row, at=at)
    return True


def now_running(tx: Transaction, row: ActionRow, attempt: AttemptRow, state: AttemptState, *, at: int) -> bool:
    """The pass that writes it says itself when it will look again."""
    since = at if state.started_at is None else to_micros(state.started_at)
    if not moves.move(tx, row, Phase.RUNNING, at=at, event=_running_event(row, attempt, since), wake=False):
        return False
    tx.attempts.update(attempt.id, running_at=since)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """An ended attempt and what it means."""

    row: ActionRow
    attempt: AttemptRow
    state: AttemptState
    verdict: Verdict
    has_report: bool
    cache: CachePlan | None
    publish: Callable[[Transaction], list[str]] | None = None
    """Makes artifacts of the outputs; returns what came to nothing, for people to read."""


def conclude(tx: Transaction, end: Conclusion, *, at: int) -> bool:
    """Row, attempt, events, artifacts, cache entry and released reservation: one transaction."""
    row, verdict = end.row, end.verdict
    problems: list[str] = []
    if end.publish is not None:
        # Nothing is published for an action that somebody has ended meanwhile.
        current = tx.actions.lock(row.id)
        if current is None or current.version != row.version:
            return False
        problems = end.publish(tx)
    ended = at if end.state.ended_at is None else max(to_micros(end.state.ended_at), end.attempt.launched_at)
    if not _move_on(tx, end, ended=ended, at=at, message="; ".join(problems)):
        return False
    tx.attempts.update(end.attempt.id, ended_at=ended)
    if row.phase == Phase.INITIALIZING and end.state.started_at is not None:
        moves.record(tx, _running_event(row, end.attempt, to_micros(end.state.started_at)))
    if verdict.outcome is Outcome.SUCCEED and end.cache is not None:
        remember(tx, end.cache, end.attempt.output_prefix, now=at)
    return True


def _move_on(tx: Transaction, end: Conclusion, *, ended: int, at: int, message: str) -> bool:
    row, verdict, prefix = end.row, end.verdict, end.attempt.output_prefix
    cached = POPULATED if end.cache is not None and verdict.outcome is Outcome.SUCCEED else row.cache_status
    target = {
        Outcome.SUCCEED: Phase.SUCCEEDED,
        Outcome.FAIL: Phase.FAILED,
        Outcome.RETRY: Phase.FAILED,
        Outcome.TIME_OUT: Phase.TIMED_OUT,
    }[verdict.outcome]
    event = make_event(
        row.id,
        row.attempts,
        target,
        at=ended,
        version=row.version,
        prefix=prefix,
        error=verdict.error,
        has_logs=True,
        has_report=end.has_report,
        cache_status=cached,
        message=message,
    )
    counters = _counters(verdict)
    if verdict.outcome is Outcome.RETRY:
        return _next_attempt(tx, row, verdict, event, ended=ended, at=at)
    output = {"output_uri": prefix, "cache_status": cached} if verdict.outcome is Outcome.SUCCEED else {}
    return moves.finish(tx, row, target, at=ended, event=event, error=verdict.error, wake=False, **counters, **output)


def time_out(tx: Transaction, row: ActionRow, attempt: AttemptRow | None, verdict: Verdict, *, at: int) -> bool:
    """Marked at once; stopping what still runs is owed by the attempt."""
    event = make_event(
        row.id,
        row.attempts,
        Phase.TIMED_OUT,
        at=at,
        version=row.version,
        prefix=attempt.output_prefix if attempt is not None else "",
        error=verdict.error,
        has_logs=attempt is not None,
    )
    if verdict.outcome is Outcome.RETRY:
        moved = _next_attempt(tx, row, verdict, event, ended=at, at=at)
    else:
        counters = _counters(verdict)
        moved = moves.finish(tx, row, Phase.TIMED_OUT, at=at, event=event, error=verdict.error, **counters)
    if moved and attempt is not None:
        tx.attempts.update(attempt.id, ended_at=at)
    return moved


def fail_before_launch(tx: Transaction, row: ActionRow, error: execution_pb2.ExecutionError, *, at: int) -> bool:
    event = make_event(row.id, row.attempts, Phase.FAILED, at=at, version=row.version, error=error)
    return moves.finish(tx, row, Phase.FAILED, at=at, event=event, error=error)


def cache_hit(tx: Transaction, row: ActionRow, prefix: str, status: int, *, at: int) -> bool:
    event = make_event(
        row.id,
        row.attempts,
        Phase.SUCCEEDED,
        at=at,
        version=row.version,
        prefix=prefix,
        cache_status=status,
        message="cache hit",
    )
    return moves.finish(tx, row, Phase.SUCCEEDED, at=at, event=event, output_uri=prefix, cache_status=status)


def wait_for_cache(tx: Transaction, row: ActionRow, *, at: int) -> None:
    if row.phase == Phase.WAITING_FOR_RESOURCES:
        return
    event = make_event(
        row.id,
        row.attempts,
        Phase.WAITING_FOR_RESOURCES,
        at=at,
        version=row.version,
        message="another action computes the same; waiting for its outputs",
    )
    moves.move(tx, row, Phase.WAITING_FOR_RESOURCES, at=at, event=event)


def recover_traces(tx: Transaction, parent: ActionRow, origin: RunId, forced: frozenset[str], *, at: int) -> None:
    """In a run that recovers another: the traces that succeeded there below the same parent, before
    the parent's first snapshot, so that their bodies are not run again."""
    for trace in tx.actions.children(origin.action(parent.id.name)):
        if trace.action_type != TRACE or trace.phase not in SUCCESSFUL or trace.id.name in forced:
            continue
        made = replace(
            trace,
            id=parent.run_id.action(trace.id.name),
            phase=Phase.RECOVERED,
            recovered_from=trace.recovered_from or trace.id.to_proto().SerializeToString(),
            created_at=at,
            queued_at=at,
            updated_at=at,
            ended_at=at,
            superseded=False,
            version=1,
        )
        if tx.actions.insert(made):
            tx.changed_action(made.id, made.parent)


def _next_attempt(
    tx: Transaction,
    row: ActionRow,
    verdict: Verdict,
    event: run_definition_pb2.ActionEvent,
    *,
    ended: int,
    at: int,
) -> bool:
    """The pause counts from the end of the last attempt; the time in the queue from now, since an end
    may be found long after it came."""
    delay = int(verdict.delay.total_seconds() * 1_000_000)
    moved = moves.move(
        tx,
        row,
        Phase.QUEUED,
        at=at,
        event=event,
        attempts=row.attempts + 1,
        queued_at=at,
        not_before=ended + delay if delay else None,
        **_counters(verdict),
    )
    if moved:
        moves.record(tx, make_event(row.id, row.attempts + 1, Phase.QUEUED, at=at, version=row.version + 1))
    return moved


def _counters(verdict: Verdict) -> dict[str, Any]:  # column -> value
    return {
        "user_failures": verdict.failures.user,
        "system_failures": verdict.failures.system,
        "infrastructure_failures": verdict.failures.infrastructure,
    }


def _running_event(row: ActionRow, attempt: AttemptRow, since: int) -> run_definition_pb2.ActionEvent:
    event = make_event(
        row.id,
        row.attempts,
        Phase.RUNNING,
        at=since,
        version=row.version,
        prefix=attempt.output_prefix,
        has_logs=True,
    )
    event.start_time.CopyFrom(to_proto(from_micros(since)))
    return event


def _supersede_failed_children(tx: Transaction, parent: ActionRow, *, at: int) -> None:
    """Children that failed, timed out or were aborted; of failed traces only the recoverable ones."""
    names = [child.id.name for child in tx.actions.failed_children(parent.id) if _may_run_again(child)]
    if not names:
        return
    tx.actions.supersede(parent.run_id, names, at=at)
    for name in names:
        tx.changed_action(parent.run_id.action(name), parent.id.name)


def _may_run_again(child: ActionRow) -> bool:
    if child.action_type != TRACE or child.error is None:
        return True
    return execution_pb2.ExecutionError.FromString(child.error).recoverability == _RECOVERABLE
