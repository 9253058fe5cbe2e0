"""The pipe on which supervisors say that an attempt has changed.

A named pipe and not a socket: it has no limit on the length of its path, a restarted server opens the
same one, and what cannot be written is simply lost, to be found by the next scan.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path

_READ_BYTES = 65_536


class Hints:
    def __init__(self, path: Path, heard: Callable[[str], None]) -> None:
        """`heard` gets the name of a folder, on the event loop."""
        self._path = path
        self._heard = heard
        self._pipe = -1
        self._rest = b""

    def open(self) -> None:
        if self._path.exists() and not stat.S_ISFIFO(self._path.stat().st_mode):
            self._path.unlink()
        if not self._path.exists():
            os.mkfifo(self._path, 0o600)
        # Open for writing too, or each last writer that leaves would look like the end.
        self._pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        asyncio.get_running_loop().add_reader(self._pipe, self._read)

    def close(self) -> None:
        if self._pipe >= 0:
            asyncio.get_running_loop().remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return
        *names, self._rest = (self._rest + data).split(b"\n")
        for name in dict.fromkeys(names):
            self._heard(name.decode(errors="replace"))
