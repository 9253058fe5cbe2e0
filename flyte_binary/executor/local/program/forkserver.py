"""A process that has the SDK imported and forks itself for each warm attempt. It runs no user code."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
from typing import Any

from . import child, files, forwarded_prefix, platforms
from .channel import Channel
from .loop import Loop
from .sdk import NotForkable, Sdk

_SELF_CHECK_SECONDS = 10.0


def main(arguments: list[str]) -> int:
    channel = Channel(socket.socket(fileno=int(arguments[0])))
    began = time.monotonic()
    platform = platforms.choose()
    sdk = Sdk()
    try:
        sdk.prepare()
        _require_clean(platform, {0, 1, 2, channel.fileno()})
        _require_revival(sdk)
    except NotForkable as error:
        channel.send({"op": "refuse", "ready": False, "reason": str(error)})
        return 0
    gc.collect()
    gc.freeze()
    channel.send(
        {
            "op": "ready",
            "ready": True,
            "flyte": sdk.version,
            "python": ".".join(map(str, sys.version_info[:3])),
            "notes": sdk.notes,
            "read_at_import": sdk.read_at_import,
            "seconds": time.monotonic() - began,
        }
    )
    order = ForkServer(channel, platform).run()
    if order is None:
        return 0
    child.enter_warm(order.folder, order.output, platform)
    child.python_signals()
    sdk.revive()
    forwarded_prefix.install()
    child.run_to_exit(sdk.main(sys.argv[0]))


class Fork:
    """In a child: which attempt it is."""

    def __init__(self, folder: str, output: int) -> None:
        self.folder = folder
        self.output = output


class ForkServer:
    def __init__(self, channel: Channel, platform: platforms.Platform) -> None:
        self._channel = channel
        self._platform = platform
        self._loop = Loop()
        self._loop.on_signal(signal.SIGCHLD, self._reap)
        self._loop.add_reader(channel.fileno(), self._take_orders)
        self._children: set[int] = set()
        self._leaving = False
        self._fork: Fork | None = None

    def run(self) -> Fork | None:
        """Until it is told to leave (None), or in each child, which unwinds to the top and starts afresh there."""
        while not self._leaving and self._fork is None:
            self._loop.step()
        return self._fork

    def _take_orders(self) -> None:
        orders = self._channel.receive()
        if orders is None:  # no word of leave: the supervisor was killed, and its locks with it
            self._kill_children()
            self._leaving = True
            return
        for order, output in orders:
            if order["op"] == "leave":
                self._leaving = True
            elif output is not None and self._fork_child(order, output):
                return

    def _fork_child(self, order: dict[str, Any], output: int) -> bool:  # Any: JSON
        """True in the child."""
        try:
            pid = os.fork()
        except OSError as error:
            os.close(output)
            self._channel.send({"op": "unforked", "name": order["name"], "reason": str(error)})
            return False
        if pid == 0:
            self._loop.close()
            self._channel.close()
            self._fork = Fork(order["folder"], output)
            return True
        os.close(output)
        self._children.add(pid)
        self._channel.send({"op": "forked", "name": order["name"], "pid": pid})
        return False

    def _reap(self) -> None:
        while self._children:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            self._children.discard(pid)
            exit_code = os.waitstatus_to_exitcode(status)
            self._channel.send({"op": "ended", "pid": pid, "exit_code": exit_code, "usage": files.usage_from(usage)})

    def _kill_children(self) -> None:
        for pid in self._children:
            for member in (pid, *self._platform.descendants(pid)):
                try:
                    os.kill(member, signal.SIGKILL)
                except ProcessLookupError:
                    continue


def _require_clean(platform: platforms.Platform, known: set[int]) -> None:
    if platform.thread_count() != 1:
        raise NotForkable(f"{platform.thread_count()} threads run where one should")
    opened = {int(name) for name in os.listdir("/proc/self/fd")}
    listing = max(opened)  # of the directory itself, closed again by now
    if left := opened - known - {listing}:
        raise NotForkable(f"importing the SDK left files open: {sorted(left)}")


def _require_revival(sdk: Sdk) -> None:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            sdk.check_revival()
            code = 0
        finally:
            os._exit(code)
    until = time.monotonic() + _SELF_CHECK_SECONDS
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            if os.waitstatus_to_exitcode(status) != 0:
                raise NotForkable("the SDK's background loop does not come back in a forked child")
            return
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise NotForkable("the SDK's background loop hangs in a forked child")
