"""Which fork server may make an attempt's process: one for each interpreter, replaced when its packages change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import structlog

from flyte_binary.executor.local.environment import base_environment, reason_to_run_cold
from flyte_binary.executor.local.interpreter import Interpreter
from flyte_binary.executor.local.settings import LocalSettings
from flyte_binary.executor.local.supervisor import PROGRAM, NotLaunched, SupervisorLink

_log = structlog.get_logger(__name__)

_START_SECONDS = 20.0
_AGAIN_SECONDS = 60.0
"""After one that was killed before it was ready."""


@dataclass(slots=True, kw_only=True)
class _ForkServer:
    id: str
    link: SupervisorLink
    state: tuple[object, ...]
    """Of the interpreter when it was started."""
    environment: dict[str, str]
    read_at_import: dict[str, str | None] = field(default_factory=dict[str, str | None])
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """It is ready, or will never be."""
    usable: bool = False
    again_at: float | None = None
    """It is gone, and from this (monotonic) time on another may be started. One that refuses is not asked again."""
    used_at: float = field(default_factory=time.monotonic)
    """When it was last chosen, or started."""


class ForkServers:
    def __init__(self, settings: LocalSettings, supervisor: Callable[[], SupervisorLink | None]) -> None:
        self._settings = settings
        self._supervisor = supervisor
        self._servers: dict[Path, _ForkServer] = {}

    def warm_up(self, interpreter: Interpreter) -> None:
        """Start one, unless there is one that still fits. Returns at once."""
        link = self._supervisor()
        server = self._servers.get(interpreter.path)
        state = interpreter.state()
        if link is None or not link.alive:
            return
        if server is not None and server.link is link:
            if server.state == state and (server.again_at is None or time.monotonic() < server.again_at):
                return
            if server.state != state:
                _log.info("fork_server_replaced", interpreter=str(interpreter.path), because="its packages changed")
            if server.again_at is None:
                link.dismiss_fork_server(server.id)
            server.settled.set()  # nobody will tell of it any more
        self._servers[interpreter.path] = self._start(link, interpreter, state)

    async def choose(self, interpreter: Interpreter, environment: Mapping[str, str]) -> str | None:
        """The fork server to use, or None for a cold process. Waits for one that is just starting."""
        self.warm_up(interpreter)
        server = self._servers.get(interpreter.path)
        if server is None:
            return None
        server.used_at = time.monotonic()
        try:
            async with asyncio.timeout(_START_SECONDS):
                await server.settled.wait()
        except TimeoutError:
            return None
        if self._servers.get(interpreter.path) is not server:
            return await self.choose(interpreter, environment)
        if not server.usable:
            return None
        reason = reason_to_run_cold(environment, server.environment, server.read_at_import)
        if reason:
            _log.debug("attempt_runs_cold", because=f"its environment sets {reason}")
            return None
        return server.id

    def retire(self, *, keep: Path, idle_seconds: float) -> None:
        """End those that nobody has chosen for so long, except that of the interpreter `keep`: each holds some 80 MB.
        The next attempt that wants one starts it again."""
        for path, server in list(self._servers.items()):
            if path == keep or time.monotonic() - server.used_at < idle_seconds:
                continue
            del self._servers[path]
            if server.again_at is None:
                server.link.dismiss_fork_server(server.id)
            server.settled.set()

    def hear(self, message: Mapping[str, Any]) -> None:
        """What the supervisor says of a fork server."""
        server = next((one for one in self._servers.values() if one.id == message["id"]), None)
        if server is None:
            return
        if message.get("gone"):
            self._hear_of_its_end(server)
        elif message["ready"]:
            server.read_at_import = dict(message["read_at_import"])
            server.usable = True
            _log.info(
                "fork_server_ready",
                flyte=message["flyte"],
                python=message["python"],
                seconds=round(message["seconds"], 2),
            )
            for note in message["notes"]:
                _log.debug("fork_server_goes_without", what=note)
        else:
            _log.warning("fork_server_not_possible", effect="tasks run as cold processes", reason=message["reason"])
        server.settled.set()

    def lose_all(self) -> None:
        """The supervisor died, and they with it."""
        for server in self._servers.values():
            server.usable = False
            server.settled.set()

    def _hear_of_its_end(self, server: _ForkServer) -> None:
        if server.usable:
            server.again_at = 0.0
        elif not server.settled.is_set():
            server.again_at = time.monotonic() + _AGAIN_SECONDS
            _log.warning("fork_server_died_at_start", effect="tasks run as cold processes", log=str(self._log_file))
        server.usable = False

    @property
    def _log_file(self) -> Path:
        return self._settings.folder / "fork-server.log"

    def _start(self, link: SupervisorLink, interpreter: Interpreter, state: tuple[object, ...]) -> _ForkServer:
        home = self._settings.home or self._settings.folder
        environment = base_environment(self._settings, interpreter.path, home, interpreter.variables)
        server = _ForkServer(id=uuid4().hex, link=link, state=state, environment=environment)
        try:
            link.start_fork_server(
                server.id, [str(interpreter.path), str(PROGRAM), "forkserver"], environment, self._log_file
            )
        except NotLaunched:
            server.again_at = 0.0
            server.settled.set()
        return server
