"""An `AppBackend` in memory, whose apps are ready when a test says so, and `AppLogs` that a test writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

from flyte_binary.app.backend import (
    AppCondition,
    AppDefinition,
    AppState,
    DeploymentStatus,
    ReplicaLines,
    Replicas,
)
from flyte_binary.domain.errors import FlyteError, NotFound
from flyte_binary.domain.ids import AppId

SINCE = datetime(2026, 1, 1, tzinfo=UTC)


class FakeAppBackend:
    def __init__(self) -> None:
        self.deployed: dict[AppId, AppDefinition] = {}
        self.stopped: set[AppId] = set()
        self.writes = 0
        """Deployments that changed something, stops and deletions."""

        self.refusal: FlyteError | None = None
        """What a deploy raises."""

        self.status: dict[AppId, DeploymentStatus] = {}
        self.held = asyncio.Event()
        """Cleared: a deletion does not get done."""

        self.held.set()
        self._changes: asyncio.Queue[AppId] = asyncio.Queue()

    def becomes(self, app: AppId, status: DeploymentStatus) -> None:
        self.status[app] = status
        self._changes.put_nowait(app)

    async def check(self, app: AppDefinition) -> None: ...

    def public_url(self, app: AppDefinition) -> str:
        return f"http://apps.test/{app.id}"

    async def deploy(self, app: AppDefinition) -> None:
        if self.refusal is not None:
            raise self.refusal
        before = self.deployed.get(app.id)
        if before is None or before.sha != app.sha or app.id in self.stopped:
            self.writes += 1
            self.status[app.id] = DeploymentStatus.DEPLOYMENT_STATUS_DEPLOYING
        self.deployed[app.id] = app
        self.stopped.discard(app.id)

    async def stop(self, app: AppDefinition) -> None:
        if app.id not in self.stopped:
            self.writes += 1
        self.stopped.add(app.id)
        self.status[app.id] = DeploymentStatus.DEPLOYMENT_STATUS_STOPPED

    async def delete(self, app: AppId) -> None:
        await self.held.wait()
        self.writes += app in self.deployed
        self.deployed.pop(app, None)

    async def observe(self, app: AppDefinition) -> AppState:
        status = self.status.get(app.id)
        if status is None:
            return AppState(conditions=())
        condition = AppCondition(status=status, message=f"it is {status}", since=SINCE)
        running = status == DeploymentStatus.DEPLOYMENT_STATUS_ACTIVE
        return AppState(conditions=[condition], sha=app.sha, replicas=int(running), namespace="apps")

    async def existing(self) -> Sequence[AppId]:
        return list(self.deployed)

    async def changed(self) -> AsyncIterator[AppId]:
        while True:
            yield await self._changes.get()


class FakeAppLogs:
    def __init__(self) -> None:
        self.events: list[Replicas | ReplicaLines] = []
        self.goes_on = False
        """After these events more could come."""

        self.open = 0
        self.asked: list[tuple[AppId, str | None]] = []

    async def follow(self, app: AppId, replica: str | None) -> AsyncIterator[Replicas | ReplicaLines]:
        self.asked.append((app, replica))
        if not self.events:
            raise NotFound(f"app {app} has no replica")
        self.open += 1
        try:
            for event in self.events:
                yield event
            if self.goes_on:
                await asyncio.Event().wait()
        finally:
            self.open -= 1
