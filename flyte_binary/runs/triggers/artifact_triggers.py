"""Runs that versions of artifacts owe to triggers: one for each trigger and version, whoever else tries the same.

What is owed was written with the version and is taken away in the transaction that makes the run, so of two servers one
finds nothing left to take. The run's name follows from trigger and version as well: a version that is deleted and
published again makes no second run beside the first.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import structlog
from flyteidl2.task import run_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.artifacts import ArtifactName, ArtifactRow
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.db.trigger_rows import FiringRow, TriggerRow
from flyte_binary.domain import topics
from flyte_binary.domain.errors import Aborted, AlreadyExists, ResourceExhausted
from flyte_binary.domain.ids import RunId
from flyte_binary.live.hub import Hub, Subscription
from flyte_binary.runs.artifacts.watching import fires
from flyte_binary.runs.create import RunCreator
from flyte_binary.runs.order import RunOrder
from flyte_binary.runs.triggers.firing import FOR_GOOD, Overtaken, hashed_name, subject_of
from flyte_binary.runs.triggers.pace import Pace
from flyte_binary.runs.triggers.put_off import PutOff

log = structlog.get_logger(__name__)

_PAGE = 200
_AT_ONCE = 8
"""Runs that are made at the same time; each mostly waits for the store or the database."""


class ArtifactTriggers:
    def __init__(
        self,
        *,
        database: Database,
        hub: Hub,
        clock: Clock,
        creator: RunCreator,
        pace: Pace,
        resync: timedelta,
    ) -> None:
        """`resync` is how long a hint of another server may be lost."""
        self._database = database
        self._hub = hub
        self._clock = clock
        self._creator = creator
        self._pace = pace
        self._resync_seconds = resync.total_seconds()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._put_off: PutOff[FiringRow] = PutOff()

    async def run(self) -> None:
        """Until cancelled."""
        with self._hub.subscribe(topics.ARTIFACT_FIRINGS) as owed:
            while True:
                owed.take()
                try:
                    next_try = await self.fire_owed()
                except Exception as error:  # noqa: BLE001  # the loop outlives whatever the database does
                    log.warning("what artifacts fire could not be looked for", error=str(error))
                    next_try = None
                await self._rest(owed, next_try)

    async def fire_owed(self) -> int | None:
        """One pass; when what failed is to be tried again, None if nothing did."""
        now = self._clock.now()
        after: FiringRow | None = None
        while True:
            start = after
            found = await self._database.read(lambda tx: tx.artifact_firings.due(after=start, limit=_PAGE))  # noqa: B023  # awaited here
            async with asyncio.TaskGroup() as group:
                for firing in found:
                    group.create_task(self._fire_one(firing, now), name=f"artifact trigger {firing.trigger}")
            if len(found) < _PAGE:
                return self._put_off.next_try(now)
            after = found[-1]

    async def _rest(self, owed: Subscription, next_try: int | None) -> None:
        seconds = self._resync_seconds
        if next_try is not None:
            seconds = min(seconds, max(0.0, (next_try - self._clock.now()) / 1_000_000))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await owed.wait()

    async def _fire_one(self, firing: FiringRow, now: int) -> None:
        if self._put_off.holds_back(firing, now):
            return
        async with self._places:
            try:
                await self._fire(firing)
            except Overtaken:
                log.debug("a version fired a trigger already", trigger=str(firing.trigger), artifact=firing.artifact)
            except Exception as error:  # noqa: BLE001  # one trigger's trouble is not the others'
                self._report(firing, now, error)
                return
        self._put_off.done(firing)

    async def _fire(self, firing: FiringRow) -> None:
        trigger, artifact = await self._database.point(lambda tx: _found(tx, firing))
        if trigger is None or artifact is None or not fires(trigger, artifact):
            return await self._drop(firing)
        await self._pace.take()
        order = RunOrder(
            run=RunId(trigger.id.project, trigger.id.domain, run_name_of(firing)),
            trigger=trigger.id.to_proto(),
            run_spec=run_pb2.RunSpec(),
            source=run_definition_pb2.RUN_SOURCE_ARTIFACT_TRIGGER,
            artifact=artifact,
        )

        def take(tx: Transaction) -> None:
            current = tx.triggers.lock(trigger.id)
            if not tx.artifact_firings.take(firing):
                raise Overtaken
            if current is None or current.revision != trigger.revision:
                raise Aborted(f"trigger {trigger.id} was changed at the same moment")

        try:
            await self._creator.start(order, trigger.deployed_by, subject_of(trigger), before=take)
        except AlreadyExists:
            await self._drop(firing)
        except (*FOR_GOOD, ResourceExhausted) as error:
            log.warning(
                "a trigger could not start its run",
                trigger=str(firing.trigger),
                artifact=firing.artifact,
                version=firing.version,
                error=str(error),
            )
            await self._drop(firing)
        return None

    async def _drop(self, firing: FiringRow) -> None:
        await self._database.write(lambda tx: tx.artifact_firings.take(firing))

    def _report(self, firing: FiringRow, now: int, error: Exception) -> None:
        failures, delay = self._put_off.failed(firing, now)
        log.warning(
            "a trigger is tried again later",
            trigger=str(firing.trigger),
            artifact=firing.artifact,
            version=firing.version,
            seconds=delay / 1_000_000,
            error=str(error),
            exc_info=None if failures > 1 else error,
        )


def run_name_of(firing: FiringRow) -> str:
    return hashed_name(firing.trigger, "artifact", firing.artifact, firing.version)


def _found(tx: Transaction, firing: FiringRow) -> tuple[TriggerRow | None, ArtifactRow | None]:
    name = ArtifactName(firing.trigger.project, firing.trigger.domain, firing.artifact)
    return tx.triggers.find(firing.trigger), tx.artifacts.get(name, firing.version)
