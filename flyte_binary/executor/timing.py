"""Which time limit of an action is up, and when the next one will be. Pure; times in microseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from flyte_binary.control.clock import Clock
from flyte_binary.db.rows import ActionRow, AttemptRow
from flyte_binary.domain.task_limits import NO_LIMIT, Limits
from flyte_binary.executor.verdict import Timeout

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Expired:
    timeout: Timeout
    limit: timedelta


def expired(row: ActionRow, attempt: AttemptRow | None, limits: Limits, clock: Clock) -> Expired | None:
    """The limit that is up, the final one first; `attempt` is the launched one, if any."""
    return next(
        (
            Expired(timeout, limit)
            for timeout, since, limit in _running_limits(row, attempt, limits)
            if _left(since, limit, clock) <= 0
        ),
        None,
    )


def seconds_to_next(row: ActionRow, attempt: AttemptRow | None, limits: Limits, clock: Clock) -> float | None:
    """Seconds until the earliest limit is up, None if there is none."""
    lefts = [_left(since, limit, clock) for _, since, limit in _running_limits(row, attempt, limits)]
    return max(min(lefts), 0) / 1_000_000 if lefts else None


def _running_limits(
    row: ActionRow, attempt: AttemptRow | None, limits: Limits
) -> Iterator[tuple[Timeout, int, timedelta]]:
    if limits.deadline > NO_LIMIT:
        yield Timeout.DEADLINE, row.created_at, limits.deadline
    if attempt is None and limits.queued_timeout > NO_LIMIT:
        # The time that a retry is held back on purpose is not time in the queue.
        yield Timeout.QUEUED, max(row.queued_at, row.not_before or 0), limits.queued_timeout
    if attempt is not None and attempt.running_at is not None and limits.max_runtime > NO_LIMIT:
        yield Timeout.MAX_RUNTIME, attempt.running_at, limits.max_runtime


def _left(since: int, limit: timedelta, clock: Clock) -> int:
    return since + limit // _MICROSECOND + clock.slept_since(since) - clock.now()


def soonest(*waits: float | None) -> float | None:
    known = [wait for wait in waits if wait is not None]
    return min(known) if known else None
