"""Building an environment again that was removed, for a task that was deployed long ago: nobody asks for its image.

What was uploaded with the image is kept beside the environments. The program is the one that builds on request, here
as a child of the server; one that is left behind by a killed server ends as any other build does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import structlog

from flyte_binary.executor.local.environments.library import Library, Named
from flyte_binary.executor.local.environments.order import Order
from flyte_binary.executor.local.folders import remove_tree

_log = structlog.get_logger(__name__)

_AGAIN_SECONDS = 60.0
"""After a failure; attempts that come meanwhile fail with the same words."""

_LEFT_SECONDS = 24 * 3600.0

_TAIL_CHARACTERS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    at: float
    log: str


class Restoring:
    def __init__(self, library: Library, scratch: Path, command: list[str], variables: Mapping[str, str]) -> None:
        self._library = library
        self._scratch = scratch
        self._command = command
        self._variables = variables
        self._running: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, _Failure] = {}

    def problem(self, named: Named, order: Order) -> str | None:
        """None while it is being built, which the first call begins; else why it cannot be, with the end of the log."""
        if named.digest in self._running:
            return None
        failure = self._failed.get(named.digest)
        if failure is not None and time.monotonic() - failure.at < _AGAIN_SECONDS:
            return failure.log
        kept = self._library.recipe(named.digest)
        if kept is None:
            return "what was uploaded with it is not there any more"
        building = asyncio.create_task(self._build(named.digest, order, *kept), name=f"restore-{named.digest}")
        self._running[named.digest] = building
        return None

    def empty_scratch(self) -> None:
        """What killed servers of this folder have left. Blocking."""
        for work in self._scratch.iterdir() if self._scratch.exists() else ():
            if time.time() - work.stat().st_mtime > _LEFT_SECONDS:
                remove_tree(work)

    async def close(self) -> None:
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _build(self, digest: str, order: Order, description: bytes, context: bytes | None) -> None:
        work = self._scratch / f"restore-{uuid4().hex[:8]}"
        try:
            await asyncio.to_thread(lambda: _lay_out(work, order, description, context))
            _log.info("environment_restoring", image=order.image)
            process = await asyncio.create_subprocess_exec(
                *self._command,
                cwd=work,
                env=dict(self._variables),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                output, _ = await process.communicate()
            except asyncio.CancelledError:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
                raise
            self._ended(digest, order.image, process.returncode, output.decode(errors="replace"))
        except OSError as error:
            self._ended(digest, order.image, None, str(error))
        finally:
            # Before it is forgotten, so that whoever closes waits for it.
            await _to_the_end(asyncio.to_thread(lambda: remove_tree(work)))
            self._running.pop(digest, None)

    def _ended(self, digest: str, image: str, code: int | None, log: str) -> None:
        if code == 0:
            self._failed.pop(digest, None)
            _log.info("environment_restored", image=image)
            return
        self._failed[digest] = _Failure(at=time.monotonic(), log=log[-_TAIL_CHARACTERS:])
        _log.warning("environment_not_restored", image=image, exit_code=code)


async def _to_the_end(work: Awaitable[None]) -> None:
    """Also if the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _lay_out(work: Path, order: Order, description: bytes, context: bytes | None) -> None:
    work.mkdir(parents=True)
    order.place(work, description, context)
