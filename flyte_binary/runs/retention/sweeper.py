"""The sweep: cache entries, then runs, then the files of removed runs, then uploads that nobody uses.

Everything is asked for again in each sweep and done in small steps, so it may be cut off at any point and done by
several servers at once. What the cache, an artifact or another run refers to is kept however old it is; runs that are
at work are left alone. Who refers to what is read before anything is removed, and files go some time after the rows,
because an action may just be about to take outputs from an entry or a run that goes: it is seen by then.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.retention import EndedRun, RemovedRun
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import FlyteError
from flyte_binary.runs.retention.pins import Pins
from flyte_binary.runs.retention.uploads import UnusedUploads
from flyte_binary.storage.store import ObjectStore

log = structlog.get_logger(__name__)

RUNS_AT_A_TIME = 50
ROWS_AT_A_TIME = 500
PAUSE_SECONDS = 0.05
"""Between two steps, for those who have work to do."""

FILES_STAY = timedelta(minutes=10)
"""How long files stay after the rows: longer than anything takes that read a row before it went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFor:
    """None: for ever."""

    runs: timedelta | None = None
    cache: timedelta | None = None
    uploads: timedelta | None = None

    @property
    def anything_goes(self) -> bool:
        return any(each is not None for each in (self.runs, self.cache, self.uploads))


@dataclass(slots=True)
class Removed:
    """Since the start of the server, for the metrics."""

    runs: int = 0
    cache_entries: int = 0
    objects: int = 0


class Sweeper:
    def __init__(
        self,
        *,
        database: Database,
        store: ObjectStore,
        clock: Clock,
        kept_for: KeptFor,
        uploads_prefix: str,
        interval: timedelta,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._database = database
        self._store = store
        self._clock = clock
        self._kept_for = kept_for
        self._uploads = UnusedUploads(database, store, clock, prefix=uploads_prefix)
        self._interval = interval
        self._pause_seconds = pause_seconds
        self.removed = Removed()

    async def run(self) -> None:
        """Sweep, now and after each interval, until cancelled."""
        while True:
            try:
                await self.sweep()
            except FlyteError as error:
                log.warning("what is too old is not removed yet", reason=str(error))
            await asyncio.sleep(self._interval.total_seconds())

    async def sweep(self) -> None:
        """Raises `FlyteError` if database or store cannot work; what is left is done by the next sweep."""
        pins = await self._database.read(_pins)
        if (before := self._before(self._kept_for.cache)) is not None:
            await self._expire_cache(before)
        if (before := self._before(self._kept_for.runs)) is not None:
            await self._remove_runs(before, pins)
        await self._empty_folders(pins)
        if self._kept_for.uploads is not None:
            self.removed.objects += await self._uploads.remove(older_than=self._kept_for.uploads, pause=self._pause)

    def _before(self, kept_for: timedelta | None) -> int | None:
        return None if kept_for is None else self._clock.now() - int(kept_for.total_seconds() * 1_000_000)

    async def _expire_cache(self, before: int) -> None:
        while True:
            gone = await self._database.write(lambda tx: tx.retention.expire_cache(before, limit=ROWS_AT_A_TIME))
            self.removed.cache_entries += gone
            if gone < ROWS_AT_A_TIME:
                return
            await self._pause()

    async def _remove_runs(self, before: int, pins: Pins) -> None:
        last: EndedRun | None = None
        while True:
            found = await self._ended(before, last)
            for ended in found:
                if not pins.hold(ended.run, ended.output_base):
                    await self._remove_run(ended)
            if len(found) < RUNS_AT_A_TIME:
                return
            last = found[-1]
            await self._pause()

    async def _ended(self, before: int, after: EndedRun | None) -> list[EndedRun]:
        return await self._database.read(lambda tx: tx.retention.ended_runs(before, after=after, limit=RUNS_AT_A_TIME))

    async def _remove_run(self, ended: EndedRun) -> None:
        if await self._database.read(lambda tx: tx.retention.is_at_work(ended.run)):
            return
        run = ended.run
        while await self._database.write(lambda tx: tx.retention.remove_actions(run, limit=ROWS_AT_A_TIME), run=run):
            await self._pause()
        at = self._clock.now()
        await self._database.write(lambda tx: tx.retention.remove_root(ended, at=at), run=run)
        self.removed.runs += 1

    async def _empty_folders(self, pins: Pins) -> None:
        before = self._clock.now() - int(FILES_STAY.total_seconds() * 1_000_000)
        last: RemovedRun | None = None
        while True:
            found = await self._removed(before, last)
            for removed in found:
                if not pins.hold(removed.run, removed.folder):
                    await self._empty(removed)
                    run = removed.run
                    await self._database.write(lambda tx, run=run: tx.retention.emptied(run), run=run)
                    await self._pause()
            if len(found) < RUNS_AT_A_TIME:
                return
            last = found[-1]

    async def _removed(self, before: int, after: RemovedRun | None) -> list[RemovedRun]:
        return await self._database.read(
            lambda tx: tx.retention.removed_runs(before, after=after, limit=RUNS_AT_A_TIME)
        )

    async def _empty(self, removed: RemovedRun) -> None:
        folder = removed.folder
        if not _may_empty(removed, self._store):
            log.warning("a folder that is not a run's own is left alone", folder=folder, run=str(removed.run))
            return
        while True:
            page = await self._store.list(folder, limit=ROWS_AT_A_TIME)
            if not page.objects:
                return
            await self._store.delete([each.uri for each in page.objects])
            self.removed.objects += len(page.objects)
            await self._pause()

    async def _pause(self) -> None:
        await asyncio.sleep(self._pause_seconds)


def _pins(tx: Transaction) -> Pins:
    return Pins(
        cached=tx.retention.cached_folders(),
        borrowed=tx.retention.borrowed(),
        of_artifacts=tx.retention.runs_of_artifacts(),
    )


def _may_empty(removed: RemovedRun, store: ObjectStore) -> bool:
    """The folder is one that only this run has."""
    run = removed.run
    return store.covers(removed.folder) and removed.folder.endswith(f"/{run.project}/{run.domain}/{run.name}")
