"""The sweep: cache entries, then runs, then the files of removed runs, then uploads that nobody uses.

Everything is asked for again in each sweep and done in small steps, so it may be cut off at any point and done by
several servers at once. What a cache entry or a recovered run refers to is kept however old it is; runs that are at
work are left alone.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.retention import EndedRun
from flyte_binary.domain.errors import FlyteError
from flyte_binary.domain.locations import join
from flyte_binary.runs.retention.pins import Pins
from flyte_binary.runs.retention.uploads import UnusedUploads
from flyte_binary.storage.store import ObjectStore

log = structlog.get_logger(__name__)

RUNS_AT_A_TIME = 50
ROWS_AT_A_TIME = 500
PAUSE_SECONDS = 0.05
"""Between two steps, for those who have work to do."""


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
        if (before := self._before(self._kept_for.cache)) is not None:
            await self._expire_cache(before)
        if (before := self._before(self._kept_for.runs)) is not None:
            await self._remove_runs(before)
        await self._empty_folders()
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

    async def _remove_runs(self, before: int) -> None:
        pins = await self._database.read(
            lambda tx: Pins(tx.retention.cached_folders(), tx.retention.recovered_outputs())
        )
        last: EndedRun | None = None
        while True:
            found = await self._ended(before, last)
            for ended in found:
                if not pins.holds(ended):
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

    async def _empty_folders(self) -> None:
        while folders := await self._database.read(lambda tx: tx.retention.folders_to_empty(limit=RUNS_AT_A_TIME)):
            for folder in folders:
                await self._empty(folder)
                await self._database.write(lambda tx, folder=folder: tx.retention.emptied(folder))
                await self._pause()

    async def _empty(self, folder: str) -> None:
        if not _may_empty(folder, self._store):
            log.warning("a folder outside of the object store is left alone", folder=folder)
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


def _may_empty(folder: str, store: ObjectStore) -> bool:
    """A run's folder lies at least three names deep: project, domain, run."""
    base = join(store.base_uri, "")
    below = folder.removeprefix(base)
    inside = folder.startswith(base) and len(below.strip("/").split("/")) >= 3
    return store.covers(folder) and (inside or not folder.startswith(store.base_uri))
