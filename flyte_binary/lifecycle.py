"""Start order, stop order, signals, and the lock that keeps a second server off the data folder.

Start: folder lock, database and migrations, store, hub, backend, then ready, then the executor. Stop on
SIGTERM: not ready; streams end cleanly; calls in progress finish; passes finish; connections close.
Attempts go on running and are adopted by the next start. `kill -9` loses nothing.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import structlog

from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.terminal import Quit, ask_to_quit, is_interactive

log = structlog.get_logger(__name__)

SWITCH_INTERVAL_SECONDS = 0.0005
"""Threads of the database hand the interpreter over in both directions many times a second; with the
default of 5 ms each hand-over can cost that much while the event loop is busy."""


@contextmanager
def held(data_dir: Path, *, shared: bool) -> Generator[None]:
    """Hold the folder; raises `FailedPrecondition` if another server does. Servers over one PostgreSQL may share it."""
    path = data_dir / "server.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            raise FailedPrecondition(
                f"another flyte-binary (process {holder or 'unknown'}) serves the data folder {data_dir}: "
                "stop it, or start this one with another --data-dir"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


class Stop:
    """What the signals ask for.

    SIGTERM stops and keeps the attempts. Ctrl-C at a terminal asks what to do with them; without a
    terminal it stops like SIGTERM.
    """

    def __init__(self, running: Callable[[], int], stop_tasks: Callable[[], Awaitable[None]]) -> None:
        self.requested = asyncio.Event()
        self._running = running
        self._stop_tasks = stop_tasks
        self._again = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None

    def install(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.requested.set)
        loop.add_signal_handler(signal.SIGINT, self._interrupted)

    def _interrupted(self) -> None:
        if not is_interactive(sys.stdin, sys.stdout):
            self.requested.set()
            return
        if self._asking is not None and not self._asking.done():
            self._again.set()
            return
        self._asking = asyncio.create_task(self._ask(), name="ask-to-quit")

    async def _ask(self) -> None:
        answer = await ask_to_quit(self._running(), stdin=sys.stdin, stdout=sys.stdout, again=self._again)
        if answer is Quit.GO_ON:
            return
        if answer is Quit.STOP:
            await self._stop_tasks()
        self.requested.set()


def leave(code: int) -> NoReturn:
    """End the process at once: everything is closed by now, and the interpreter would take up to a
    second to dismantle itself object by object."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def cancel(task: asyncio.Task[None], *, within: float) -> None:
    """Cancel and wait; what does not end in time is left behind with a line in the log."""
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=within)
    if not done:
        log.warning("did not end in time", task=task.get_name(), seconds=within)
        return
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("failed while stopping", task=task.get_name(), exc_info=error)
