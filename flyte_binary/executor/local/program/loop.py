"""A minimal event loop: readers, timers and signals, for processes that must stay small.

asyncio would do, at three times the memory and start-up time of the supervisor.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import signal
import socket
import time
import traceback
from collections.abc import Callable


class Timer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Loop:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._signals: dict[int, Callable[[], None]] = {}
        self._awake, self._wake = socket.socketpair()
        self._awake.setblocking(False)
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        self.add_reader(self._awake.fileno(), self._take_signals)

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, callback)

    def remove_reader(self, descriptor: int) -> None:
        try:
            self._selector.unregister(descriptor)
        except KeyError:
            pass

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(callback)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), timer))
        return timer

    def on_signal(self, number: int, callback: Callable[[], None]) -> None:
        self._signals[number] = callback
        signal.signal(number, _do_nothing)

    def step(self) -> None:
        """Wait for what comes next and run its callbacks."""
        for key, _ in self._selector.select(self._timeout()):
            # An earlier callback of this round may have removed it, or (in a forked child) closed everything.
            if key.fd in (self._selector.get_map() or ()):
                _call(key.data)
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                _call(timer.callback)

    def close(self) -> None:
        """Give up everything, without touching what the descriptors of others lead to."""
        signal.set_wakeup_fd(-1)
        self._selector.close()
        self._awake.close()
        self._wake.close()

    def _timeout(self) -> float | None:
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return None
        return max(0.0, self._timers[0][0] - time.monotonic())

    def _take_signals(self) -> None:
        try:
            numbers = self._awake.recv(4096)
        except BlockingIOError:
            return
        for number in set(numbers):
            callback = self._signals.get(number)
            if callback is not None:
                callback()


def _call(callback: Callable[[], None]) -> None:
    """One attempt's mishap must not end the process that holds all the others."""
    try:
        callback()
    except Exception:  # noqa: BLE001  # the loop that everything hangs on; the log of the process has it
        traceback.print_exc()


def _do_nothing(_number: int, _frame: object) -> None:
    """A handler of Python's own, so that the wake-up descriptor is written to."""
