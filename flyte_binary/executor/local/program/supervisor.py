"""The process that holds attempts: gets their locks from the server, starts them, sees them end.

One per life of a server. It is small, imports nothing but the standard library, runs no user code,
and outlives the server: at the end of the server's socket it takes no more orders and leaves when its
last attempt has ended. Children of a fork server that is gone become its own (it is their subreaper),
so their exit status is not lost. `docs/adr` says why it is one process and not one per attempt.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
from typing import Any

from . import child, files, platforms
from .channel import Channel
from .loop import Loop
from .supervised import Supervised
from .warm import Warm

_STRAY_GRACE_SECONDS = 0.2
"""For what an ended attempt leaves behind (multiprocessing's resource tracker needs a moment to tidy up)."""
_STRAY_LIMIT_SECONDS = 5.0
"""A process that SIGKILL does not end in this time hangs in the kernel; the attempt is reported without it."""
_STRAY_LOOK_SECONDS = 0.01
_TERMINATION_GRACE_SECONDS = 10.0


def main(arguments: list[str]) -> int:
    connection, hints, platform = arguments
    if os.fork() != 0:
        return 0  # the server waits for this one; the supervisor is nobody's child
    os.setsid()
    Supervisor(socket.socket(fileno=int(connection)), hints, platform).run()
    return 0


class Supervisor:
    def __init__(self, connection: socket.socket, hints: str, platform: str) -> None:
        self.loop = Loop()
        self.platform = platforms.choose(platform)
        self.platform_name = platform
        self.hints = hints
        self.files_limit = _raise_files_limit()
        self._server = Channel(connection)
        self._serving = True
        self._attempts: set[Supervised] = set()
        self._own: dict[int, Supervised] = {}
        self._warm: dict[str, Warm] = {}
        self._warm_pids: dict[int, Warm] = {}
        self._dying: list[Warm] = []
        self._ended: list[Supervised] = []
        self._memory_kills = self.platform.memory_kills()

    def run(self) -> None:
        self.platform.adopt_orphans()
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_IGN)
        self.loop.on_signal(signal.SIGCHLD, self._reap)
        self.loop.on_signal(signal.SIGTERM, self._terminate)
        self.loop.add_reader(self._server.fileno(), self._take_orders)
        self.answer({"op": "ready", "pid": os.getpid()})
        while self._serving or self._attempts:
            self.loop.step()

    def killed_for_memory(self) -> bool:
        before, self._memory_kills = self._memory_kills, self.platform.memory_kills()
        return self._memory_kills > before

    # The server's orders.

    def _take_orders(self) -> None:
        orders = self._server.receive()
        if orders is None:
            self._leave_server()
            return
        for order, descriptor in orders:
            match order["op"]:
                case "launch" if descriptor is not None:
                    self._launch(order, descriptor)
                case "warm":
                    self._start_warm(order)
                case "cool":
                    self._cool(order["id"])
                case _:
                    raise ValueError(f"unknown order {order['op']}")

    def _leave_server(self) -> None:
        self._serving = False
        self.loop.remove_reader(self._server.fileno())
        self._server.close()
        for name in list(self._warm):
            self._cool(name)

    def answer(self, message: dict[str, Any]) -> None:  # Any: JSON
        if self._serving and not self._server.send(message):
            self._leave_server()

    def _launch(self, order: dict[str, Any], lock: int) -> None:  # Any: JSON
        self.killed_for_memory()  # so that a later answer is about the time since now
        try:
            attempt = Supervised(self, order, lock)
        except OSError as error:
            os.close(lock)
            self.answer({"op": "failed", "name": order["name"], "reason": str(error)})
            return
        self._attempts.add(attempt)
        if order["warm"] is None:
            self._launch_cold(attempt)
            return
        warm = self._warm.get(order["warm"])
        if warm is None or not warm.launch(attempt):
            self.lost(attempt, "the fork server is gone")

    def _launch_cold(self, attempt: Supervised) -> None:
        # A stop that comes before the child is itself waits until it is, and is not taken for one of ours.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            pid = os.fork()
            if pid == 0:
                child.run_cold(attempt.folder, attempt.child_end, self.platform, self.files_limit)
        except OSError as error:
            self.lost(attempt, str(error))
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._own[pid] = attempt
        self.started(attempt, pid)

    def started(self, attempt: Supervised, pid: int) -> None:
        attempt.begin(pid)
        self.answer({"op": "launched", "name": attempt.name, "pid": pid})

    def lost(self, attempt: Supervised, reason: str) -> None:
        """Asked for, but never begun."""
        self._attempts.discard(attempt)
        attempt.abandon()
        self.answer({"op": "failed", "name": attempt.name, "reason": reason})

    def _terminate(self) -> None:
        for attempt in self._attempts:
            if attempt.ended_at is None and attempt.pid:
                attempt.stop(_TERMINATION_GRACE_SECONDS, "Stopped: its supervisor was asked to end.")

    # Fork servers.

    def _start_warm(self, order: dict[str, Any]) -> None:  # Any: JSON
        warm = Warm(self, order)
        self._warm[order["id"]] = warm
        self._warm_pids[warm.pid] = warm

    def _cool(self, name: str) -> None:
        warm = self._warm.pop(name, None)
        if warm is not None:
            warm.dismiss()

    def _adopt_from(self, warm: Warm) -> None:
        """The fork server is dead and reaped, so its living children are ours by now."""
        if self._warm.get(warm.id) is warm:
            del self._warm[warm.id]
        warm.listen()  # what it said last
        warm.close()
        self.answer({"op": "warm", "id": warm.id, "gone": True})
        alive = set(self.platform.children(os.getpid()))
        for pid, attempt in warm.attempts.items():
            if pid in alive:
                self._own[pid] = attempt
            else:
                self.ended(attempt, None, {})

    # Ends.

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid in self._warm_pids:
                self._dying.append(self._warm_pids.pop(pid))
            attempt = self._own.pop(pid, None) or self._child_of_a_dead(pid)
            if attempt is not None:
                self.ended(attempt, os.waitstatus_to_exitcode(status), files.usage_from(usage))
        while self._dying:
            self._adopt_from(self._dying.pop())

    def _child_of_a_dead(self, pid: int) -> Supervised | None:
        """An attempt whose fork server died, and which died before that was noticed."""
        for warm in [*self._warm_pids.values(), *self._dying]:
            attempt = warm.attempts.pop(pid, None)
            if attempt is not None:
                return attempt
        return None

    def ended(self, attempt: Supervised, exit_code: int | None, usage: dict[str, float]) -> None:
        attempt.end(exit_code, usage)
        self._ended.append(attempt)
        if len(self._ended) == 1:
            self._clear(0.0)

    def _clear(self, waited: float) -> None:
        """Every living attempt keeps its orphans below itself, so whoever is our child without being
        known belongs to an attempt that has ended."""
        for warm in self._warm_pids.values():
            warm.listen()  # or a child could be taken for a stray before its fork server's word of it is heard
        strays = self._strays()
        if strays and waited < _STRAY_LIMIT_SECONDS:
            if waited >= _STRAY_GRACE_SECONDS or any(attempt.stopping for attempt in self._ended):
                self._kill(strays)
            self.loop.call_later(_STRAY_LOOK_SECONDS, lambda: self._clear(waited + _STRAY_LOOK_SECONDS))
            return
        ended, self._ended = self._ended, []
        for attempt in ended:
            attempt.finish(self._attempts.discard)

    def _strays(self) -> list[int]:
        if not self.platform.can_fork:  # no subreaper: only what stayed in the group can be found
            return [-attempt.pid for attempt in self._ended if _exists(-attempt.pid)]
        known = {*self._own, *self._warm_pids}
        for warm in self._warm_pids.values():
            known.update(warm.attempts)
        return [pid for pid in self.platform.children(os.getpid()) if pid not in known]

    def _kill(self, strays: list[int]) -> None:
        """Negative ones are groups."""
        for stray in strays:
            for pid in (stray, *(self.platform.descendants(stray) if stray > 0 else ())):
                try:
                    os.kill(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    continue
        self._reap()


def _raise_files_limit() -> tuple[int, int]:
    """An attempt takes five descriptors here; what was before is what children get back."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    except (ValueError, OSError):
        pass  # macOS refuses "unlimited"
    return before


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
