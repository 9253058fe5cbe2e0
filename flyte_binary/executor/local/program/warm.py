"""A fork server, as the supervisor sees it: started, asked for children, told of their ends."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
from typing import TYPE_CHECKING, Any

from . import files
from .channel import Channel
from .supervised import Supervised

if TYPE_CHECKING:
    from .supervisor import Supervisor

_CHANNEL = 3
"""The number under which a fork server finds its end of the channel."""


class Warm:
    def __init__(self, supervisor: Supervisor, order: dict[str, Any]) -> None:  # Any: JSON
        self.id: str = order["id"]
        self._supervisor = supervisor
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            _become_fork_server(order, theirs.fileno(), supervisor.files_limit)
        theirs.close()
        self._channel = Channel(ours)
        self._closed = False
        self._asked: dict[str, Supervised] = {}
        self.attempts: dict[int, Supervised] = {}
        supervisor.loop.add_reader(self._channel.fileno(), self.listen)

    def launch(self, attempt: Supervised) -> bool:
        if self._closed:
            return False
        self._asked[attempt.name] = attempt
        order = {"op": "fork", "name": attempt.name, "folder": attempt.folder}
        if self._channel.send(order, attempt.child_end):
            return True
        del self._asked[attempt.name]
        return False

    def dismiss(self) -> None:
        """No more children are wanted. It leaves at once; the living ones stay."""
        if not self._closed:
            self._channel.send({"op": "leave"})

    def listen(self) -> None:
        reports = [] if self._closed else self._channel.receive()
        if reports is None:
            self.close()
            return
        for report, _ in reports:
            match report["op"]:
                case "forked":
                    attempt = self._asked.pop(report["name"])
                    self.attempts[report["pid"]] = attempt
                    self._supervisor.started(attempt, report["pid"])
                case "unforked":
                    self._supervisor.lost(self._asked.pop(report["name"]), report["reason"])
                case "ended":
                    attempt = self.attempts.pop(report["pid"], None)
                    if attempt is not None:
                        self._supervisor.ended(attempt, report["exit_code"], report["usage"])
                case _:  # what it says about itself at its start
                    self._supervisor.answer({**report, "op": "warm", "id": self.id})

    def close(self) -> None:
        """It says nothing more; what becomes of its children is decided when it has been reaped."""
        if self._closed:
            return
        self._closed = True
        self._supervisor.loop.remove_reader(self._channel.fileno())
        self._channel.close()
        for attempt in self._asked.values():
            self._supervisor.lost(attempt, "the fork server is gone")
        self._asked.clear()


def _become_fork_server(order: dict[str, Any], channel: int, files_limit: tuple[int, int]) -> None:  # Any: JSON
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, files_limit)
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        channel = fcntl.fcntl(channel, fcntl.F_DUPFD, _CHANNEL + 1)  # out of the way of the targets
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(channel, _CHANNEL)
        files.close_from(_CHANNEL + 1)
        os.chdir("/")
        os.execve(order["argv"][0], [*order["argv"], str(_CHANNEL)], order["env"])
    finally:
        os._exit(127)
