"""Time that tests make: a machine that can sleep, and an event loop in which waiting costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar  # any: what a coroutine is sent and yields

from tests.fakes.manual_clock import ManualClock

T = TypeVar("T")


class SleepyClock(ManualClock):
    """A manual clock of a machine that can be suspended."""

    def __init__(self) -> None:
        super().__init__()
        self._sleeps: list[tuple[int, int]] = []

    def sleep(self, *, seconds: float) -> None:
        self.advance(seconds=seconds)
        self._sleeps.append((self.moment, int(seconds * 1_000_000)))

    def slept_since(self, moment: int) -> int:
        return sum(length for woken, length in self._sleeps if woken > moment)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer whenever nothing is ready. For code without threads, files and sockets."""

    def __init__(self) -> None:
        super().__init__()
        self._skipped = 0.0

    def time(self) -> float:
        return super().time() + self._skipped

    def _run_once(self) -> None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]
        if not self._ready and timers:
            self._skipped += max(min(timers) - self.time(), 0)
        super()._run_once()


def in_virtual_time(coroutine: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)
