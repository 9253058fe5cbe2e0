"""Uploads that nobody uses: code and files below `uploads/`, and inputs below `offloaded-inputs/`.

An upload is used if the specification of a kept task, action, trigger or artifact names it, or its folder; if a kept
action has it as its inputs; or if a kept run of its project and domain was made within a day of it, which may have it
among the values of its inputs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.domain.locations import OFFLOADED, join
from flyte_binary.domain.timestamps import to_micros
from flyte_binary.runs.retention.named import NamedUploads
from flyte_binary.storage.store import ListedObject, ObjectStore

PAGE = 500
DAY_MICROS = 24 * 3600 * 1_000_000
HOUR_MICROS = 3600 * 1_000_000

Pause = Callable[[], Awaitable[None]]


class UnusedUploads:
    def __init__(self, database: Database, store: ObjectStore, clock: Clock, *, prefix: str) -> None:
        """`prefix` is the folder of uploads below the store's base."""
        self._database = database
        self._store = store
        self._clock = clock
        self._prefix = prefix

    async def remove(self, *, older_than: timedelta, pause: Pause) -> int:
        """How many objects were removed. Raises `FlyteError`."""
        before = self._clock.now() - int(older_than.total_seconds() * 1_000_000)
        folders = (join(self._store.base_uri, self._prefix), join(self._store.base_uri, OFFLOADED))
        named = NamedUploads(folders)
        await self._add_kept(named, pause)
        removed = 0
        for folder in folders:
            token = ""
            while True:
                page = await self._store.list(folder, token=token, limit=PAGE)
                old = [each for each in page.objects if to_micros(each.modified_at) < before]
                unused = await self._unused(old, folder, named)
                if unused:
                    await self._store.delete([each.uri for each in unused])
                    removed += len(unused)
                token = page.next_token
                if not token:
                    break
                await pause()
        return removed

    async def _add_kept(self, named: NamedUploads, pause: Pause) -> None:
        """All specifications that are kept."""
        named.add(await self._database.read(lambda tx: tx.retention.trigger_specs()))
        named.add(await self._database.read(lambda tx: tx.retention.artifact_specs()))
        digests = await self._database.read(lambda tx: tx.retention.kept_specs())
        for start in range(0, len(digests), PAGE):
            some = digests[start : start + PAGE]
            named.add(await self._database.read(lambda tx, some=some: tx.retention.specs(some)))
            await pause()

    async def _unused(self, old: list[ListedObject], folder: str, named: NamedUploads) -> list[ListedObject]:
        candidates = [each for each in old if not named.names(each.uri, folder)]
        if not candidates:
            return []
        uris = [uri for each in candidates for uri in (each.uri, each.uri.rpartition("/")[0])]
        used = await self._database.read(lambda tx: tx.retention.used_inputs(uris))
        free: list[ListedObject] = []
        for each in candidates:
            if used.isdisjoint({each.uri, each.uri.rpartition("/")[0]}) and not await self._near_a_run(each, folder):
                free.append(each)
        return free

    async def _near_a_run(self, each: ListedObject, folder: str) -> bool:
        parts = each.uri.removeprefix(join(folder, "")).split("/")
        if len(parts) < 3:  # no project and domain: not ours to judge
            return True
        at = to_micros(each.modified_at)
        project, domain = parts[0], parts[1]
        return await self._database.read(
            lambda tx: tx.retention.has_run_between(project, domain, at - HOUR_MICROS, at + DAY_MICROS)
        )
