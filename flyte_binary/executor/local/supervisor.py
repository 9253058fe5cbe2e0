"""The server's end of a supervisor (`program/supervisor.py`): started, told, listened to."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from flyte_binary.executor.local import program
from flyte_binary.executor.local.program.channel import Channel
from flyte_binary.executor.local.settings import LocalSettings

_log = structlog.get_logger(__name__)

PROGRAM = Path(program.__file__).with_name("__main__.py")
_START_SECONDS = 30.0
_LAUNCH_SECONDS = 30.0


class NotLaunched(Exception):
    """The order did not lead to a process; it may be given again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A launch, as the supervisor needs it."""

    name: str
    folder: Path
    fork_server: str | None
    memory_limit_bytes: int | None
    log_limit_bytes: int


class SupervisorLink:
    def __init__(self, channel: Channel, told: Callable[[dict[str, Any]], None], lost: Callable[[], None]) -> None:
        """`told` gets what is said of fork servers; `lost` is called once, if the supervisor dies."""
        self._channel = channel
        self._told = told
        self._lost = lost
        self._ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._launches: dict[str, asyncio.Future[None]] = {}
        self.alive = True
        asyncio.get_running_loop().add_reader(channel.fileno(), self._listen)

    async def launch(self, order: Order, lock: int) -> None:
        """Returns when the process exists. Raises `NotLaunched`. `lock` stays the caller's to close."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._launches[order.name] = done
        try:
            self._send(
                {
                    "op": "launch",
                    "name": order.name,
                    "folder": str(order.folder),
                    "warm": order.fork_server,
                    "memory_limit": order.memory_limit_bytes,
                    "log_limit": order.log_limit_bytes,
                },
                lock,
            )
            async with asyncio.timeout(_LAUNCH_SECONDS):
                await done
        except TimeoutError as error:
            raise NotLaunched("the supervisor does not answer") from error
        finally:
            self._launches.pop(order.name, None)

    def start_fork_server(self, name: str, argv: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self._send({"op": "warm", "id": name, "argv": list(argv), "env": environment, "log": str(log)})

    def dismiss_fork_server(self, name: str) -> None:
        if self.alive:
            self._send({"op": "cool", "id": name})

    async def wait_ready(self) -> int:
        async with asyncio.timeout(_START_SECONDS):
            return await self._ready

    def close(self) -> None:
        """Attempts go on; the supervisor leaves after the last."""
        if self.alive:
            self.alive = False
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._channel.close()
            self._fail("the server stops")

    def _send(self, message: dict[str, Any], lock: int | None = None) -> None:
        if not self.alive or not self._channel.send(message, lock):
            raise NotLaunched("the supervisor is gone")

    def _listen(self) -> None:
        answers = self._channel.receive()
        if answers is None:
            self.close()
            self._lost()
            return
        for answer, _ in answers:
            self._hear(answer)

    def _hear(self, answer: dict[str, Any]) -> None:
        match answer["op"]:
            case "ready":
                self._ready.set_result(answer["pid"])
            case "warm":
                self._told(answer)
            case "launched" | "failed":
                launch = self._launches.get(answer["name"])
                if launch is None or launch.done():
                    return
                if answer["op"] == "launched":
                    launch.set_result(None)
                else:
                    launch.set_exception(NotLaunched(answer["reason"]))
            case other:
                _log.warning("supervisor_says_something_unknown", what=other)

    def _fail(self, reason: str) -> None:
        for waiting in (self._ready, *self._launches.values()):
            if not waiting.done():
                waiting.set_exception(NotLaunched(reason))
                waiting.exception()  # or asyncio complains about one that nobody waits for


async def start_supervisor(
    settings: LocalSettings, told: Callable[[dict[str, Any]], None], lost: Callable[[], None]
) -> SupervisorLink:
    """Raises `NotLaunched`."""
    ours, theirs = socket.socketpair()
    link = SupervisorLink(Channel(ours), told, lost)
    try:
        await asyncio.to_thread(_spawn, settings, theirs)
        await link.wait_ready()
    except (OSError, subprocess.SubprocessError, TimeoutError) as error:
        link.close()
        raise NotLaunched(f"the supervisor of attempts does not start: {error}") from error
    finally:
        theirs.close()
    return link


def _spawn(settings: LocalSettings, connection: socket.socket) -> None:
    """What is started here forks and leaves, so that the supervisor is no child of ours."""
    # Linux tells itself what psutil tells elsewhere; without packages it starts in half the time and memory.
    flags = ["-I", "-S"] if settings.platform == "auto" and sys.platform == "linux" else ["-I"]
    log = settings.folder / "supervisor.log"
    with log.open("ab") as complaints:
        subprocess.run(
            [
                sys.executable,
                *flags,
                str(PROGRAM),
                "supervisor",
                str(connection.fileno()),
                str(settings.hints),
                settings.platform,
            ],
            pass_fds=[connection.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=complaints,
            stderr=complaints,
            cwd=settings.folder,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
            check=True,
            timeout=_START_SECONDS,
        )
