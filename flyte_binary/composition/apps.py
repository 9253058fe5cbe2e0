"""Apps: the backend that runs them, and the passes over them."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from flyteidl2.core import security_pb2

from flyte_binary.app.apps import Apps
from flyte_binary.app.backend import AppBackend, AppLogs
from flyte_binary.app.ingress.ports import Activator
from flyte_binary.app.local.backend import LocalAppBackend
from flyte_binary.app.local.logs import LocalAppLogs
from flyte_binary.app.local.processes import ProcessPhase, ProcessState, ReplicaId, ReplicaSpec
from flyte_binary.app.local.settings import LocalAppSettings
from flyte_binary.app.reconciler import AppReconciler
from flyte_binary.config.model import Config
from flyte_binary.control.clock import SystemClock
from flyte_binary.db.database import Database
from flyte_binary.domain.apps import replica_attempt
from flyte_binary.domain.ids import AppId
from flyte_binary.domain.logs import LogPage
from flyte_binary.executor.backend import AttemptPhase, AttemptSpec
from flyte_binary.executor.local.backend import LocalBackend
from flyte_binary.executor.secrets import requested_secrets
from flyte_binary.live.hub import Hub
from flyte_binary.storage.store import ObjectStore
from flyte_binary.storage.uris import join

_TURN_SECONDS = 1.0

_PHASES = {
    AttemptPhase.ABSENT: ProcessPhase.ABSENT,
    AttemptPhase.STARTING: ProcessPhase.STARTING,
    AttemptPhase.RUNNING: ProcessPhase.RUNNING,
    AttemptPhase.EXITED: ProcessPhase.EXITED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppParts:
    backend: AppBackend
    logs: AppLogs
    activator: Activator
    apps: Apps


async def open_local_apps(
    config: Config,
    database: Database,
    hub: Hub,
    store: ObjectStore,
    local: LocalBackend,
    clock: SystemClock,
    stack: AsyncExitStack,
    *,
    public_url: str,
    internal_url: str,
    node: str,
) -> AppParts:
    """Adopts what runs: at once or, where another server of the folder does so, when that has ended. `internal_url` is
    this server's address for processes of this machine."""
    processes = AppProcesses(local)
    apps = config.internal_apps
    settings = LocalAppSettings(
        public_url=public_url.rstrip("/"),
        internal_url=internal_url,
        raw_data_prefix=join(store.base_uri, "apps"),
        node=node,
        environment=apps.default_env_vars,
        request_timeout=apps.default_request_timeout,
        scaledown_period=apps.local.scaledown_period,
        start_timeout=apps.local.start_timeout,
        stop_grace=apps.local.stop_grace,
        max_replicas=apps.local.max_replicas,
        max_waiting=apps.local.max_waiting,
        log_limit_bytes=config.executor.logs.max_size_bytes,
    )
    backend = LocalAppBackend(settings, processes, database, clock)
    stack.push_async_callback(backend.close)
    turn = Turn(config.data_dir / "apps.lock")
    stack.callback(turn.close)
    if turn.take():
        await backend.start()

    async def until_ours() -> None:
        if turn.taken:
            return
        await turn.wait()
        await backend.start()

    passes = Apps(database, hub, backend, AppReconciler(database, backend, clock), until_ours)
    return AppParts(backend=backend, logs=LocalAppLogs(backend, processes), activator=backend, apps=passes)


class Turn:
    """Whose turn it is to host the apps of a data folder: one server's, until it ends."""

    def __init__(self, path: Path) -> None:
        self.taken = False
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.taken = True
        return True

    async def wait(self) -> None:
        while not self.take():  # noqa: ASYNC110 - a lock of files has no event
            await asyncio.sleep(_TURN_SECONDS)

    def close(self) -> None:
        os.close(self._descriptor)


class AppProcesses:
    """Replicas of apps, run by what runs the attempts of tasks (`app.local.processes.Processes`)."""

    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    async def launch(self, replica: ReplicaSpec) -> None:
        await self._backend.launch(
            AttemptSpec(
                id=replica_attempt(replica.id.app, replica.id.number),
                nonce=replica.nonce,
                argv=replica.argv,
                env=replica.env,
                image=replica.image,
                secrets=requested_secrets(security_pb2.SecurityContext(secrets=replica.secrets)),
                bundle_uri=replica.bundle_uri,
                memory_limit_bytes=replica.memory_limit_bytes,
                log_limit_bytes=replica.log_limit_bytes,
                notices=replica.notices,
            )
        )

    async def observe(self, replica: ReplicaId, nonce: str) -> ProcessState:
        state = await self._backend.observe(replica_attempt(*replica), nonce)
        return ProcessState(
            phase=_PHASES[state.phase],
            exit_code=state.exit_code,
            out_of_memory=state.out_of_memory,
            reason=state.reason,
        )

    async def listens(self, replica: ReplicaId) -> frozenset[int]:
        return await self._backend.listening_ports(replica_attempt(*replica))

    async def stop(self, replica: ReplicaId, *, grace_seconds: float) -> None:
        await self._backend.stop(replica_attempt(*replica), grace_seconds=grace_seconds)

    async def forget(self, replica: ReplicaId) -> None:
        await self._backend.forget(replica_attempt(*replica))

    async def changed(self) -> AsyncIterator[ReplicaId]:
        async for attempt in self._backend.replicas_changed():
            action = attempt.action
            yield ReplicaId(AppId(action.project, action.domain, action.run), attempt.number)

    async def tail_position(self, replica: ReplicaId, *, lines: int) -> int | None:
        return await self._backend.tail_position(replica_attempt(*replica), lines=lines)

    async def read(self, replica: ReplicaId, position: int, *, limit_lines: int) -> LogPage:
        return await self._backend.read(replica_attempt(*replica), position, limit_lines=limit_lines)

    async def wait(self, replica: ReplicaId, position: int, *, timeout_seconds: float) -> None:
        await self._backend.wait(replica_attempt(*replica), position, timeout_seconds=timeout_seconds)
