"""One attempt under the supervisor: its output, its stop, its memory, its end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any, Protocol

from . import files
from .loop import Loop, Timer
from .output import Output
from .platforms import Platform

_READ_BYTES = 1024 * 1024
_GATHER_SECONDS = 0.004
"""After a read the pipe may fill for this long: a process that prints line by line costs one read a stretch."""
_WATCH_SECONDS = (0.05, 2.0)
_GROWTH_BYTES_PER_SECOND = 1024**3
"""How fast memory is taken to grow at most, when the next look at it is planned."""
_DRAIN_SECONDS = 1.0
_WRITE_AGAIN_SECONDS = 1.0
_MIB = 1024 * 1024


class Host(Protocol):
    """The supervisor, as one attempt sees it."""

    loop: Loop
    platform: Platform
    hints: str

    def killed_for_memory(self) -> bool:
        """Whether the kernel has killed anything for memory since this was last asked."""
        ...


class Supervised:
    def __init__(self, host: Host, order: dict[str, Any], lock: int) -> None:  # Any: JSON
        self._host = host
        self.folder: str = order["folder"]
        self.name: str = order["name"]
        self._memory_limit: int | None = order["memory_limit"]
        self._lock = lock
        self.pid = 0
        self.ended_at: float | None = None
        self._started_at = 0.0
        self._exit_code: int | None = None
        self._usage: dict[str, float] = {}
        self._reason = ""
        self._out_of_memory = False
        self._kill_at: Timer | None = None
        self._stopping_until: float | None = None
        self._control = os.open(self._path(files.CONTROL), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._pipe, self.child_end = os.pipe()
        except OSError:
            os.close(self._control)
            raise
        try:
            self._output = Output(self.folder, order["log_limit"])
        except OSError:
            for descriptor in (self._control, self._pipe, self.child_end):
                os.close(descriptor)
            raise
        os.set_blocking(self._pipe, False)

    @property
    def stopping(self) -> bool:
        return self._stopping_until is not None

    def begin(self, pid: int) -> None:
        """The child exists."""
        self.pid = pid
        os.close(self.child_end)
        self._started_at = time.time()
        birth = self._host.platform.birth(pid)
        self._write(files.STARTED, {"pid": pid, "birth": birth, "at": self._started_at}, self._hint)
        self._host.loop.add_reader(self._pipe, self._pump)
        self._host.loop.add_reader(self._control, self._look)
        if self._memory_limit is not None:
            self._host.loop.call_later(_WATCH_SECONDS[0], self._watch_memory)
        self._look()

    def abandon(self) -> None:
        """There is no child after all; whoever asked for it may claim the folder again."""
        os.close(self.child_end)
        self._output.close(time.time())
        self._release()

    # What the child prints.

    def _pump(self) -> None:
        if not self._read_pipe():
            return
        self._host.loop.remove_reader(self._pipe)
        self._host.loop.call_later(_GATHER_SECONDS, self._listen_again)

    def _listen_again(self) -> None:
        if self._pipe >= 0:
            self._host.loop.add_reader(self._pipe, self._pump)

    def _read_pipe(self) -> bool:
        """False when nothing more can come now."""
        try:
            data = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:  # the child closed its output; it may go on living
            self._close_pipe()
            return False
        self._output.write(data, time.time())
        return True

    def _close_pipe(self) -> None:
        self._host.loop.remove_reader(self._pipe)
        os.close(self._pipe)
        self._pipe = -1

    # Being stopped.

    def _look(self) -> None:
        try:
            os.read(self._control, 4096)
        except BlockingIOError:
            pass
        order = files.read_json(self._path(files.STOP))
        if order is not None and self.ended_at is None:
            self.stop(float(order["grace_seconds"]), str(order.get("reason", "")) or "Stopped on request.")

    def stop(self, grace_seconds: float, reason: str) -> None:
        """Again with a shorter grace shortens it."""
        until = time.monotonic() + grace_seconds
        if self._stopping_until is not None and until >= self._stopping_until:
            return
        if self._stopping_until is None:
            self._reason = self._reason or reason
            self._signal(signal.SIGTERM)
        self._stopping_until = until
        if self._kill_at is not None:
            self._kill_at.cancel()
        self._kill_at = self._host.loop.call_later(grace_seconds, self.kill)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        """To the whole group, and to descendants that made groups of their own."""
        if self.ended_at is not None:
            return
        outside = [pid for pid in self._host.platform.descendants(self.pid) if _group(pid) != self.pid]
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            _kill(self.pid, number)  # it has not made its group yet
        for pid in outside:
            _kill(pid, number)

    # Its memory.

    def _watch_memory(self) -> None:
        limit = self._memory_limit
        if limit is None or self.ended_at is not None or self._out_of_memory:
            return
        used = self._host.platform.resident_bytes(self.pid)
        if used > limit:
            used = self._host.platform.owned_bytes(self.pid)
        if used > limit:
            self._out_of_memory = True
            self._reason = (
                f"Out of memory: its processes held {used // _MIB} MiB, and the limit is {limit // _MIB} MiB."
            )
            self.kill()
            return
        shortest, longest = _WATCH_SECONDS
        wait = min(longest, max(shortest, (limit - used) / _GROWTH_BYTES_PER_SECOND))
        self._host.loop.call_later(wait, self._watch_memory)

    # Its end.

    def end(self, exit_code: int | None, usage: dict[str, float]) -> None:
        """The child is gone; what it left behind is being cleared away by the supervisor."""
        self.ended_at = time.time()
        self._exit_code = exit_code
        self._usage = usage
        if self._kill_at is not None:
            self._kill_at.cancel()
        if exit_code is None:
            self._reason = self._reason or "Its exit status was lost with the fork server, which was killed."
        elif exit_code < 0 and not self._reason:
            self._explain_signal(-exit_code)

    def finish(self, done: Callable[[Supervised], None]) -> None:
        """Nothing of it lives any more: say so, and let go. `done` is called when that is written."""
        latest = time.monotonic() + _DRAIN_SECONDS
        while self._pipe >= 0 and self._read_pipe() and time.monotonic() < latest:
            pass  # what stood in the pipe; someone out of our reach may hold its other end, so not until its end
        if self._pipe >= 0:
            self._close_pipe()
        now = time.time()
        if self._reason:
            self._output.note(self._reason, now)
        self._output.close(now)
        status = {
            "exit_code": self._exit_code,
            "out_of_memory": self._out_of_memory,
            "reason": self._reason,
            "started_at": self._started_at,
            "ended_at": self.ended_at,
            **self._usage,
        }

        def let_go() -> None:
            self._host.loop.remove_reader(self._control)
            self._release()
            self._hint()
            done(self)

        self._write(files.EXIT, status, let_go)

    def _write(self, name: str, value: dict[str, Any], then: Callable[[], None]) -> None:  # Any: JSON
        """Again and again while the disk is full: without these files the attempt would count as lost."""
        try:
            files.write_json(self._path(name), value)
        except FileNotFoundError:
            pass  # someone removed the folder; there is nobody to tell
        except OSError:
            self._host.loop.call_later(_WRITE_AGAIN_SECONDS, lambda: self._write(name, value, then))
            return
        then()

    def _explain_signal(self, number: int) -> None:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = "unknown to this system"
        self._reason = f"Killed by signal {number} ({name})."
        if number == signal.SIGKILL and self._host.killed_for_memory():
            self._out_of_memory = True
            self._reason = "Killed by the kernel: the machine, or a limit set on it from outside, ran out of memory."

    def _release(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        os.close(self._control)
        os.close(self._lock)

    def _hint(self) -> None:
        files.send_hint(self._host.hints, self.name)

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
