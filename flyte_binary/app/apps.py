"""The passes over apps as a whole: what wakes them, and the apps that nobody has a row of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from flyte_binary.app.backend import AppBackend
from flyte_binary.app.reconciler import AppReconciler
from flyte_binary.control.controller import Controller
from flyte_binary.db.database import Database
from flyte_binary.domain import topics
from flyte_binary.domain.errors import FlyteError
from flyte_binary.domain.ids import AppId
from flyte_binary.live.hub import Hub, Subscription

log = structlog.get_logger(__name__)

WORKERS = 8


class Apps:
    def __init__(
        self,
        database: Database,
        hub: Hub,
        backend: AppBackend,
        reconciler: AppReconciler,
        until_ours: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`until_ours` returns when no other server makes these passes any more."""
        self._until_ours = until_ours
        self._database = database
        self._hub = hub
        self._backend = backend
        self._controller: Controller[AppId] = Controller("apps", reconciler.reconcile, workers=WORKERS)

    async def run(self) -> None:
        """Work until cancelled. Apps go on running; whoever starts next adopts them."""
        if self._until_ours is not None:
            await self._until_ours()
        with self._hub.subscribe(topics.APP_WORK) as work:
            for row in await self._database.read(lambda tx: tx.apps.all()):
                self._controller.queue.add(row.id)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow_work(work), name="apps-work")
                group.create_task(self._follow_backend(), name="apps-backend")
                group.create_task(self._report_unknown(), name="apps-unknown")
                group.create_task(self._controller.run(), name="apps-controller")

    async def _follow_work(self, work: Subscription) -> None:
        while True:
            for key in await work.wait():
                self._controller.queue.add(AppId(*key))

    async def _follow_backend(self) -> None:
        async for app in self._backend.changed():
            self._controller.queue.add(app)

    async def _report_unknown(self) -> None:
        """Left alone: they may belong to another installation in the same namespace."""
        try:
            existing = set(await self._backend.existing())
            rows = await self._database.read(lambda tx: tx.apps.all())
        except FlyteError as error:
            log.warning("existing apps cannot be listed", reason=error.message)
            return
        for app in sorted(existing - {row.id for row in rows}):
            log.warning("an app is there that this server knows nothing of; it is left alone", app=str(app))
