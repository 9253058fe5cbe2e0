"""The scheduler: fires whatever is due, sleeps until something is, and starts over.

What is due stands in the database, so a pass needs no memory of the last one: it may come late, be cut off, or run on
several servers at once. Clocks that jump are no matter either. Forward is a time during which nobody looked, which the
catch-up policy is for; backward, nothing is due until the clock is where it was.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.trigger_rows import TriggerRow
from flyte_binary.domain import topics
from flyte_binary.domain.catchup import CatchupPolicy, times_to_fire
from flyte_binary.domain.ids import TriggerId
from flyte_binary.domain.timestamps import from_micros
from flyte_binary.live.hub import Hub, Subscription
from flyte_binary.runs.triggers.changes import schedule_of
from flyte_binary.runs.triggers.firing import Firing, Overtaken
from flyte_binary.runs.triggers.pace import Pace
from flyte_binary.runs.triggers.put_off import PutOff

log = structlog.get_logger(__name__)

_PAGE = 200
_AT_ONCE = 8
"""Triggers that are fired at the same time; each mostly waits for the store or the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    policy: CatchupPolicy = CatchupPolicy.LAST
    limit: int = 100


class TriggerScheduler:
    def __init__(
        self,
        *,
        database: Database,
        hub: Hub,
        clock: Clock,
        firing: Firing,
        pace: Pace,
        catch_up: CatchUp,
        resync: timedelta,
    ) -> None:
        self._database = database
        self._hub = hub
        self._clock = clock
        self._firing = firing
        self._pace = pace
        self._catch_up = catch_up
        self._resync_seconds = resync.total_seconds()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._put_off: PutOff[TriggerId] = PutOff()

    async def run(self) -> None:
        """Until cancelled."""
        with self._hub.subscribe(topics.TRIGGERS) as changed:
            while True:
                changed.take()
                try:
                    due = await self.fire_due()
                except Exception as error:  # noqa: BLE001  # the loop outlives whatever the database does
                    log.warning("the scheduler could not look for what is due", error=str(error))
                    due = None
                await self._rest(changed, due)

    async def fire_due(self) -> int | None:
        """One pass; when something will be due next, None if nothing will."""
        now = self._clock.now()
        after: TriggerRow | None = None
        while True:
            start = after
            rows = await self._database.read(lambda tx: tx.triggers.due(now, after=start, limit=_PAGE))  # noqa: B023  # awaited here
            async with asyncio.TaskGroup() as group:
                for row in rows:
                    group.create_task(self._fire_one(row, now), name=f"trigger {row.id}")
            if len(rows) < _PAGE:
                break
            after = rows[-1]
        due = await self._database.read(lambda tx: tx.triggers.next_due(now))
        return min((time for time in (self._put_off.next_try(now), due) if time is not None), default=None)

    async def _rest(self, changed: Subscription, due: int | None) -> None:
        seconds = self._resync_seconds
        if due is not None:
            seconds = min(seconds, max(0.0, (due - self._clock.now()) / 1_000_000))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await changed.wait()

    async def _fire_one(self, row: TriggerRow, now: int) -> None:
        if self._put_off.holds_back(row.id, now):
            return
        async with self._places:
            try:
                await self._fire_times(row, now)
            except Overtaken:
                log.debug("a trigger was fired or changed by somebody else", trigger=str(row.id))
            except Exception as error:  # noqa: BLE001  # one trigger's trouble is not the others'
                self._report(row, now, error)
                return
        self._put_off.done(row.id)

    async def _fire_times(self, row: TriggerRow, now: int) -> None:
        schedule = schedule_of(row)
        if schedule is None or row.next_due is None:
            return await self._firing.pass_over(row, None)
        times = times_to_fire(schedule, row.next_due, now, self._catch_up.policy, self._catch_up.limit)
        if times[:1] != [row.next_due]:
            log.info(
                "a trigger passes over times that were missed",
                trigger=str(row.id),
                since=from_micros(row.next_due).isoformat(),
                policy=self._catch_up.policy.value,
            )
        if not times:
            return await self._firing.pass_over(row, schedule.next_after(now))
        for time in times:
            following = schedule.next_after(time)
            await self._pace.take()
            await self._firing.fire(row, time, following)
            row = replace(row, next_due=following)
        return None

    def _report(self, row: TriggerRow, now: int, error: Exception) -> None:
        failures, delay = self._put_off.failed(row.id, now)
        log.warning(
            "a trigger is tried again later",
            trigger=str(row.id),
            seconds=delay / 1_000_000,
            error=str(error),
            exc_info=None if failures > 1 else error,
        )
