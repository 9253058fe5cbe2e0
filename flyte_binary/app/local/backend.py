"""Apps as processes of this machine: `AppBackend`, and the activator behind the ingress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog

from flyte_binary.app.backend import AppDefinition, AppState
from flyte_binary.app.ingress.ports import NoSuchApp, Upstream
from flyte_binary.app.local.local_app import LocalApp, Surroundings
from flyte_binary.app.local.processes import Processes, ProcessPhase, ReplicaId
from flyte_binary.app.local.program import app_path, check_program, request_timeout_of
from flyte_binary.app.local.replica import HOST
from flyte_binary.app.local.settings import LocalAppSettings
from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.domain.apps import host_label
from flyte_binary.domain.errors import Unavailable
from flyte_binary.domain.ids import AppId

log = structlog.get_logger(__name__)

_DELETE_MARGIN_SECONDS = 5.0


class LocalAppBackend:
    def __init__(self, settings: LocalAppSettings, processes: Processes, database: Database, clock: Clock) -> None:
        self._settings = settings
        self._processes = processes
        self._database = database
        self._apps: dict[AppId, LocalApp] = {}
        self._labels: dict[str, AppId] = {}
        self._changed: dict[AppId, None] = {}
        self._news = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._hosts = False
        self._around = Surroundings(
            settings=settings, processes=processes, database=database, clock=clock, changed=self._tell
        )

    async def start(self) -> None:
        """Adopt what runs. Before, this server hosts no app; another one of this machine may."""
        for row in await self._database.read(lambda tx: tx.app_replicas.of_node(self._settings.node)):
            state = await self._processes.observe(ReplicaId(row.app, row.number), row.nonce)
            if state.phase is ProcessPhase.ABSENT and not row.ready:
                app, number = row.app, row.number
                await self._database.write(lambda tx, app=app, number=number: tx.app_replicas.remove(app, number))
            else:
                self._app(row.app).adopt(row, state)
        self._following = asyncio.create_task(self._follow(), name="app-processes")
        self._hosts = True

    async def close(self) -> None:
        """Apps go on running and are adopted by the next start."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await asyncio.gather(*(app.close() for app in self._apps.values()))

    def app(self, app: AppId) -> LocalApp | None:
        return self._apps.get(app)

    # AppBackend

    async def check(self, app: AppDefinition) -> None:
        check_program(app)

    def public_url(self, app: AppDefinition) -> str:
        return f"{self._settings.public_url}{app_path(app.id)}"

    async def deploy(self, app: AppDefinition) -> None:
        self._app(app.id).deploy(app)

    async def stop(self, app: AppDefinition) -> None:
        self._app(app.id).stop(app)

    async def delete(self, app: AppId) -> None:
        """Raises `Unavailable` while a process is left."""
        local = self._apps.get(app)
        if local is None:
            return
        local.stop()
        try:
            async with asyncio.timeout(self._settings.stop_grace.total_seconds() + _DELETE_MARGIN_SECONDS):
                await local.until_gone()
        except TimeoutError:
            raise Unavailable(f"processes of app {app} have not ended yet") from None
        await local.close()
        await local.forget()
        self._apps.pop(app, None)
        self._labels.pop(host_label(app), None)

    async def observe(self, app: AppDefinition) -> AppState:
        local = self._apps.get(app.id)
        if local is None:
            return AppState(conditions=())
        return AppState(conditions=local.conditions, sha=local.sha, replicas=local.live_replicas)

    async def existing(self) -> Sequence[AppId]:
        return list(self._apps)

    async def changed(self) -> AsyncIterator[AppId]:
        """For one listener."""
        for app in self._apps:
            self._changed[app] = None
        while True:
            self._news.clear()
            while self._changed:
                app = next(iter(self._changed))
                del self._changed[app]
                yield app
            await self._news.wait()

    # Activator

    def resolve(self, label: str) -> AppId | None:
        return self._labels.get(label)

    @asynccontextmanager
    async def lease(self, app: AppId) -> AsyncGenerator[Upstream]:
        if not self._hosts:
            raise Unavailable(f"app {app} is hosted by another server of this machine; ask that one")
        local = self._apps.get(app)
        if local is None or local.definition is None:
            raise NoSuchApp(app)
        timeout = request_timeout_of(local.definition.spec, self._settings).total_seconds()
        replica = await local.acquire()
        try:
            yield Upstream(HOST, replica.port, timeout)
        finally:
            local.release(replica)

    def _app(self, app: AppId) -> LocalApp:
        local = self._apps.get(app)
        if local is None:
            local = self._apps[app] = LocalApp(app, self._around)
            self._labels[host_label(app)] = app
        return local

    def _tell(self, app: AppId) -> None:
        self._changed[app] = None
        self._news.set()

    async def _follow(self) -> None:
        async for replica in self._processes.changed():
            local = self._apps.get(replica.app)
            if local is not None:
                local.note(replica.number)
