"""All that reaches into the SDK's private parts, with a check at the start of a fork server.

Written against flyte 2.12. If a later SDK is built differently, `prepare` raises `NotForkable` with
one sentence and attempts run as cold processes. What only saves time stands in `shortcuts.py`.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import inspect
import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from . import local_files, shortcuts
from .programs import FORKABLE

WARM_MODULES = (
    "flyte._bin.runtime",
    "flyte._internal.runtime.entrypoints",
    "flyte._internal.controllers.remote",
    "flyte._internal.controllers.remote._controller",
    "flyte._internal.controllers.remote._client",
    "flyte._internal.resolvers.default",
    "flyte._internal.runtime.task_serde",
    "flyte._code_bundle.bundle",
    "flyte._utils.asyncify",
    "flyte.git",
    "flyte.remote._client.controlplane",
    "flyte.remote._client.auth._interceptors.default_metadata",
    "flyte.remote._client.auth._interceptors.retry",
    "flyte.report",
    "flyte.storage",
    "flyteidl2.actions.actions_service_connect",
    "flyteidl2.workflow.queue_service_connect",
    "flyteidl2.workflow.state_service_connect",
    "anyio",
    "faulthandler",
    "httpcore",
    "opentelemetry.propagate",
    "opentelemetry.trace",
    "pyqwest._glue",
    "cloudpickle",
    "asyncio.unix_events",
    "multiprocessing",
    "importlib.resources._itertools",
    "importlib.readers",
)
"""What a leaf imports on its way, found by comparing `sys.modules`; none of them starts a thread.
Only the first must exist."""


class NotForkable(Exception):
    """One sentence on why children cannot be forked from here."""


class Sdk:
    def __init__(self) -> None:
        self.version = ""
        self.notes: list[str] = []
        """What had to be left out."""
        self.read_at_import: dict[str, str | None] = {}
        """Environment variables that were looked at while importing, and what they were: a child that has
        another value would be treated differently by a cold process."""
        self._loop: Any = None  # Any: flyte.syncify._api._BackgroundLoop

    def prepare(self) -> None:
        """Import, and leave no thread and no open file behind. Raises `NotForkable`."""
        with _recorded(self.read_at_import):
            self._import()
        self._loop = self._find_loop()
        others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
        if others != [self._loop.thread]:
            raise NotForkable(f"importing the SDK started unknown threads: {others}")
        self._loop.stop()
        if self._loop.thread.is_alive():
            raise NotForkable("the SDK's background thread did not stop")
        self._loop.loop.close()
        self.notes += shortcuts.take()
        local_files.install()

    def _import(self) -> None:
        try:
            self.version = str(importlib.import_module("flyte").__version__)
            importlib.import_module(WARM_MODULES[0])
        except Exception as error:
            raise NotForkable(f"importing the SDK failed: {type(error).__name__}: {error}") from error
        for name in WARM_MODULES[1:]:
            try:
                importlib.import_module(name)
            except ImportError:
                self.notes.append(f"{name} is not there")

    def _find_loop(self) -> Any:  # Any: flyte.syncify._api._BackgroundLoop
        try:
            loop = importlib.import_module("flyte.syncify").syncify._bg_loop
            if not (isinstance(loop.thread, threading.Thread) and isinstance(loop.loop, asyncio.AbstractEventLoop)):
                raise AttributeError("its loop or thread is of another kind")
            if list(inspect.signature(type(loop).__init__).parameters) != ["self", "name"]:
                raise AttributeError("its constructor takes other arguments")
        except AttributeError as error:
            raise NotForkable(f"the SDK's background loop is not as expected: {error}") from error
        return loop

    def revive(self) -> None:
        """In a child: give the SDK its background loop again. The object stays, since all wrapped functions
        refer to it; what it registered for the exit is registered anew, not twice."""
        atexit.unregister(self._loop.stop)
        self._loop.__init__(name=self._loop.thread.name)
        shortcuts.check_in_child()

    def check_revival(self) -> None:
        """In a child of the self-check: raises unless a synchronous call of the SDK comes back."""
        self.revive()

        async def answer() -> int:
            return 42

        future = asyncio.run_coroutine_threadsafe(answer(), self._loop.loop)
        if future.result(timeout=5) != 42:
            raise NotForkable("the SDK's background loop does not answer in a forked child")

    def main(self, program: str) -> Callable[[], object]:
        """Of one of the `FORKABLE`, by its path."""
        return importlib.import_module(FORKABLE[os.path.basename(program)]).main


@contextmanager
def _recorded(seen: dict[str, str | None]) -> Generator[None]:
    """Note every environment variable that is looked up, with its value.

    Not seen are lookups by C code, and those of a walk through all of them (which fsspec does, for
    `FSSPEC_*`): `environment.py` of the server knows these by their prefixes.
    """
    kind: Any = type(os.environ)  # Any: its methods are replaced
    original_look_up, original_walk = kind.__getitem__, kind.__iter__
    walked: list[str] = [""]

    def look_up(self: os._Environ[str], name: str) -> str:  # pyright: ignore[reportPrivateUsage]  # there is no other name
        if self is os.environ and name != walked[0]:
            seen[name] = None
            seen[name] = original_look_up(self, name)
        return original_look_up(self, name)

    def walk(self: os._Environ[str]) -> Iterator[str]:  # pyright: ignore[reportPrivateUsage]  # as above
        for name in original_walk(self):
            walked[0] = name
            yield name
        walked[0] = ""

    kind.__getitem__, kind.__iter__ = look_up, walk
    try:
        yield
    finally:
        kind.__getitem__, kind.__iter__ = original_look_up, original_walk
