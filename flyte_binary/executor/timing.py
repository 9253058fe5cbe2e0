"""Which time limit of an action is up, and when the next one will be. Pure; times in microseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from flyte_binary.control.clock import Clock
from flyte_binary.db.rows import ActionRow, AttemptRow, EventRow
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.task_limits import NO_LIMIT, Limits
from flyte_binary.executor.verdict import Timeout

_MICROSECOND = timedelta(microseconds=1)

LOOK_AGAIN_SECONDS = 5.0
"""How often a live attempt is looked at without a hint; the backend tells of changes at once."""


@dataclass(frozen=True, slots=True)
class Expired:
    timeout: Timeout
    limit: timedelta


@dataclass(frozen=True, slots=True)
class RunningLimit:
    timeout: Timeout
    since: int
    limit: timedelta

    def left(self, clock: Clock) -> int:
        return self.since + self.limit // _MICROSECOND + clock.slept_since(self.since) - clock.now()


def expired(limits: Iterable[RunningLimit], clock: Clock) -> Expired | None:
    """The first of the limits that is up."""
    return next((Expired(one.timeout, one.limit) for one in limits if one.left(clock) <= 0), None)


def seconds_to_next(limits: Iterable[RunningLimit], clock: Clock) -> float | None:
    """Seconds until the earliest limit is up, None if there is none."""
    lefts = [one.left(clock) for one in limits]
    return max(min(lefts), 0) / 1_000_000 if lefts else None


def first_look(limits: Limits, *, at_most: float) -> float:
    """Seconds after which an attempt that has just begun to run is looked at."""
    longest = limits.max_runtime.total_seconds()
    return min(at_most, longest) if longest > 0 else at_most


def running_limits(row: ActionRow, attempt: AttemptRow | None, limits: Limits, *, began_at: int) -> list[RunningLimit]:
    """The limits that run now, the final one first; `attempt` is the launched one, if any."""
    return list(_running_limits(row, attempt, limits, began_at))


def began_at(row: ActionRow, events_of: Callable[[ActionId], Iterable[EventRow]]) -> int:
    """When the action was first queued with its present budget: a reopened one starts over.

    Each failure has used up one attempt and is counted once, so the counters tell which attempt was
    the first, and its events when that was.
    """
    first = row.attempts - row.user_failures - row.system_failures - row.infrastructure_failures
    if first <= 1:
        return row.created_at
    queued = (event.created_at for event in events_of(row.id) if (event.attempt, event.phase) == (first, Phase.QUEUED))
    return min(queued, default=row.created_at)


def _running_limits(
    row: ActionRow, attempt: AttemptRow | None, limits: Limits, began_at: int
) -> Iterator[RunningLimit]:
    if limits.deadline > NO_LIMIT:
        yield RunningLimit(Timeout.DEADLINE, began_at, limits.deadline)
    if attempt is None and limits.queued_timeout > NO_LIMIT:
        # The time that a retry is held back on purpose is not time in the queue.
        yield RunningLimit(Timeout.QUEUED, max(row.queued_at, row.not_before or 0), limits.queued_timeout)
    if attempt is not None and attempt.running_at is not None and limits.max_runtime > NO_LIMIT:
        yield RunningLimit(Timeout.MAX_RUNTIME, attempt.running_at, limits.max_runtime)


def soonest(*waits: float | None) -> float | None:
    known = [wait for wait in waits if wait is not None]
    return min(known) if known else None
