"""Attempts as processes of this machine: the `ExecutionBackend` and `LogSource` of a laptop.

Nothing is remembered here that is not in the attempts' folders, so a restarted server finds what
runs, what has ended meanwhile and what was lost. Supervisors say when something changed; a slow scan
finds what a lost hint would have said.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import structlog

from flyte_binary.domain.apps import is_replica
from flyte_binary.domain.errors import Unavailable
from flyte_binary.domain.ids import AttemptId
from flyte_binary.executor.backend import AttemptSpec, AttemptState, LogPage
from flyte_binary.executor.compatibility import Runtime
from flyte_binary.executor.local import log_files
from flyte_binary.executor.local.bundles import Bundles, BundleStore
from flyte_binary.executor.local.changes import Changes
from flyte_binary.executor.local.environments.environments import Environments
from flyte_binary.executor.local.folders import Folders
from flyte_binary.executor.local.fork_servers import ForkServers
from flyte_binary.executor.local.hints import Hints
from flyte_binary.executor.local.interpreter import Interpreter
from flyte_binary.executor.local.interpreters import Interpreters
from flyte_binary.executor.local.launcher import Launcher
from flyte_binary.executor.local.log_waiters import LogWaiters
from flyte_binary.executor.local.observed import state_from
from flyte_binary.executor.local.ports import listening_ports
from flyte_binary.executor.local.program import files, platforms
from flyte_binary.executor.local.remains import kill_remains
from flyte_binary.executor.local.settings import LocalSettings
from flyte_binary.executor.local.supervisor import SupervisorLink, start_supervisor
from flyte_binary.executor.local.threads import LocalThreads
from flyte_binary.executor.secrets import SecretValues

_log = structlog.get_logger(__name__)

_IDLE_SECONDS = 600.0
"""How long the fork server of an image is kept without an attempt."""

_COLLECT_SECONDS = 3600.0
"""Between two looks for environments that nobody uses any more."""


class LocalBackend:
    def __init__(
        self,
        settings: LocalSettings,
        bundles: BundleStore,
        environments: Environments | None = None,
        secrets: SecretValues | None = None,
    ) -> None:
        """Without `environments` there are no images but those of the settings."""
        self._settings = settings
        self._platform = platforms.choose(settings.platform)
        self._threads = LocalThreads()
        self._folders = Folders(settings.attempts)
        self._changes = Changes()
        self._waiters = LogWaiters()
        self._hints = Hints(settings.hints, self._heard)
        self._bundles = Bundles(settings, bundles, self._platform, self._threads)
        self._fork_servers = ForkServers(settings, lambda: self._link)
        self._link: SupervisorLink | None = None
        self.environments = environments
        self._linking = asyncio.Lock()
        self._interpreters = Interpreters(settings, environments)
        self._launching: dict[AttemptId, asyncio.Lock] = {}
        self._living: set[AttemptId] = set()
        self._scan: asyncio.Task[None] | None = None
        self._collecting: asyncio.Task[None] | None = None
        self._look_soon: asyncio.Task[None] | None = None
        self._stopping = False
        self._launcher = Launcher(
            settings,
            folders=self._folders,
            bundles=self._bundles,
            fork_servers=self._fork_servers,
            supervisor=self._supervisor,
            interpreter=self._interpreters.of,
            threads=self._threads,
            environments=environments,
            secrets=secrets,
        )

    async def start(self) -> Interpreter:
        """Find what is there, listen, warm up. Returns what tasks run under, to be shown; its `problem` is not
        fatal, since it may be mended while the server runs."""
        await self._threads.run(self._prepare_folders)
        self._hints.open()
        await self._bundles.prepare()
        self._living = set(await self._threads.run(lambda: list(self._folders.all())))
        self._scan = asyncio.create_task(self._keep_scanning(), name="local-executor-scan")
        interpreter = await self._interpreters.of("")
        (_log.warning if interpreter.problem else _log.info)("task_interpreter", says=interpreter.describe())
        if not interpreter.problem:
            await self._supervisor()
        if self.environments is not None:
            collecting = self._keep_collecting(self.environments)
            self._collecting = asyncio.create_task(collecting, name="local-executor-environments")
        return interpreter

    async def stop_serving(self) -> None:
        """Let go of everything; attempts keep running and are found again."""
        self._stopping = True
        for task in (self._scan, self._collecting):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._link is not None:
            self._link.close()
        if self._look_soon is not None:
            await self._look_soon
        if self.environments is not None:
            await self.environments.close()
        self._changes.close()
        await self._waiters.close()
        self._hints.close()
        self._threads.close()

    async def runtime_of(self, image: str) -> Runtime:
        interpreter = await self._interpreters.of(image)
        return Runtime(
            python=interpreter.python,
            flyte=interpreter.flyte,
            interpreter=str(interpreter.path),
            built=interpreter.path != self._settings.interpreter,
            preparing=interpreter.preparing,
        )

    # ExecutionBackend

    async def launch(self, attempt: AttemptSpec) -> None:
        lock = self._launching.setdefault(attempt.id, asyncio.Lock())
        try:
            async with lock:
                self._living.add(attempt.id)
                try:
                    launched = await self._launcher.launch(attempt)
                finally:
                    # If it was forgotten before it had a folder, nobody else would tell of that folder.
                    self._living.add(attempt.id)
        except Unavailable:
            await self._end_other_launch(attempt)
            raise
        finally:
            if not lock.locked():
                self._launching.pop(attempt.id, None)
        if launched:
            self._heard(self._folders.name(attempt.id))

    async def observe(self, attempt: AttemptId, nonce: str, *, with_cpu: bool = False) -> AttemptState:
        # A few small files, from the page cache: less than the way to a thread and back.
        found = self._folders.look(attempt)
        if found is None or found.exit is not None:
            return state_from(found, nonce)
        if found.lost:
            await self._threads.run(lambda: kill_remains(found, self._platform))
        cpu_seconds = None
        if with_cpu and found.held and found.started is not None:
            pid: int = found.started["pid"]
            cpu_seconds = await self._threads.run(lambda: self._platform.cpu_seconds(pid))
        return state_from(found, nonce, cpu_seconds=cpu_seconds)

    async def stop(self, attempt: AttemptId, *, grace_seconds: float) -> None:
        await self._threads.run(lambda: self._order_stop(attempt, grace_seconds))

    async def forget(self, attempt: AttemptId) -> None:
        """Raises `Unavailable` while it still runs."""
        await self._threads.run(lambda: self._forget(attempt))
        self._living.discard(attempt)

    async def changed(self) -> AsyncIterator[AttemptId]:
        """Without the replicas of apps, which `replicas_changed` tells of."""
        async for attempt in self._all_changed():
            if not is_replica(attempt):
                yield attempt

    async def replicas_changed(self) -> AsyncIterator[AttemptId]:
        async for attempt in self._all_changed():
            if is_replica(attempt):
                yield attempt

    async def listening_ports(self, attempt: AttemptId) -> frozenset[int]:
        """On which TCP ports the process or one of its descendants listens; none if it is not there."""
        found = self._folders.look(attempt)
        if found is None or not found.held or found.started is None:
            return frozenset()
        pid: int = found.started["pid"]
        return await self._threads.run(lambda: listening_ports(pid))

    async def _all_changed(self) -> AsyncIterator[AttemptId]:
        with self._changes.listener() as listener:
            # Listening has begun before the folders are read, so nothing falls between.
            for attempt in await self._threads.run(lambda: list(self._folders.all())):
                listener.add(attempt)
            async for attempt in listener:
                yield attempt

    # LogSource

    async def tail_position(self, attempt: AttemptId, *, lines: int) -> int | None:
        folder = self._folders.path(attempt)

        def find() -> int | None:
            if self._folders.look(attempt) is None:
                return None
            return log_files.position_before_last(folder, lines)

        return await self._threads.run(find)

    async def read(self, attempt: AttemptId, position: int, *, limit_lines: int) -> LogPage:
        folder = self._folders.path(attempt)
        return await self._threads.run(
            lambda: log_files.read_page(folder, position, limit_lines=limit_lines, over=self._is_over(attempt))
        )

    async def wait(self, attempt: AttemptId, position: int, *, timeout_seconds: float) -> None:
        over = await self._threads.run(lambda: self._is_over(attempt))
        if not over and not self._stopping:
            await self._waiters.wait(attempt, self._folders.path(attempt), position, timeout_seconds)

    # What they need.

    def _prepare_folders(self) -> None:
        for folder in (self._settings.folder, self._settings.attempts):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folders.empty_trash()

    async def _supervisor(self) -> SupervisorLink:
        async with self._linking:
            if self._link is None or not self._link.alive:
                self._link = await start_supervisor(self._settings, self._told, self._supervisor_lost)
                interpreter = await self._interpreters.of("")
                if self._settings.fork_server and self._platform.can_fork and not interpreter.problem:
                    self._fork_servers.warm_up(interpreter)
            return self._link

    def _told(self, message: dict[str, Any]) -> None:
        self._fork_servers.hear(message)

    def _supervisor_lost(self) -> None:
        self._fork_servers.lose_all()
        if not self._stopping:
            _log.error("supervisor_killed", effect="its attempts are lost and count as system failures")
            self._look_soon = asyncio.create_task(self._look_at_living(), name="local-executor-look")

    def _heard(self, name: str) -> None:
        attempt = self._folders.attempt(name)
        if attempt is not None:
            self._changes.tell(attempt)
            self._waiters.changed(attempt)

    async def _keep_scanning(self) -> None:
        while True:
            await self._look_at_living()
            self._fork_servers.retire(keep=self._settings.interpreter, idle_seconds=_IDLE_SECONDS)
            await asyncio.sleep(self._settings.scan_interval.total_seconds())

    async def _keep_collecting(self, environments: Environments) -> None:
        while True:
            await environments.collect(await self._threads.run(self._folders.environments_in_use))
            await asyncio.sleep(_COLLECT_SECONDS)

    async def _look_at_living(self) -> None:
        for attempt in list(self._living):
            found = await self._threads.run(lambda attempt=attempt: self._folders.look(attempt))
            if found is not None and found.held:
                continue
            if attempt in self._launching:
                continue
            if found is not None and found.lost:
                await self._threads.run(lambda found=found: kill_remains(found, self._platform))
            self._living.discard(attempt)
            self._heard(self._folders.name(attempt))

    def _is_over(self, attempt: AttemptId) -> bool:
        found = self._folders.look(attempt)
        return found is None or not found.held

    def _order_stop(self, attempt: AttemptId, grace_seconds: float) -> None:
        found = self._folders.look(attempt)
        if found is None or not found.held:
            return
        folder = self._folders.path(attempt)
        files.write_json(str(folder / files.STOP), {"grace_seconds": grace_seconds})
        files.send_hint(str(folder / files.CONTROL), "stop")

    async def _end_other_launch(self, spec: AttemptSpec) -> None:
        """What runs under this attempt's id with another nonce has no row that wants it."""

        def end() -> None:
            found = self._folders.look(spec.id)
            if found is not None and found.held and found.nonce != spec.nonce:
                self._order_stop(spec.id, 0)

        await self._threads.run(end)

    def _forget(self, attempt: AttemptId) -> None:
        found = self._folders.look(attempt)
        if found is not None and found.held:
            raise Unavailable(f"attempt {attempt} still runs and cannot be removed")
        if found is not None and found.lost:
            kill_remains(found, self._platform)
        self._folders.discard(self._folders.path(attempt))
