"""Which of the times that have come are fired: the policy for those that nobody was there to see."""

from __future__ import annotations

from collections import deque
from enum import Enum

from flyte_binary.domain.schedules import Schedule

ON_TIME_MICROS = 60_000_000
"""A time that is this late at most has not been missed, for `CatchupPolicy.SKIP`."""

_FIRST_WINDOW_MICROS = 60_000_000


class CatchupPolicy(Enum):
    SKIP = "skip"
    LAST = "last"
    ALL = "all"


def times_to_fire(schedule: Schedule, due: int, now: int, policy: CatchupPolicy, limit: int) -> list[int]:
    """Oldest first. `due` is the first time that has not been fired; under `ALL` the newest `limit` are kept."""
    newest = _newest(schedule, due, now, limit if policy is CatchupPolicy.ALL else 1)
    if policy is CatchupPolicy.SKIP:
        return [time for time in newest if now - time <= ON_TIME_MICROS]
    return newest


def _newest(schedule: Schedule, due: int, now: int, count: int) -> list[int]:
    """Up to `count` of the last times between `due` and `now`, without walking through years of minutes."""
    window = _FIRST_WINDOW_MICROS
    while True:
        start = max(due - 1, now - window)
        found: deque[int] = deque(maxlen=count)
        time = schedule.next_after(start)
        while time is not None and time <= now:
            found.append(time)
            time = schedule.next_after(time)
        if len(found) == count or start < due:
            return list(found)
        window *= 4
