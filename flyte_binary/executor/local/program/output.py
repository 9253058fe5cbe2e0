"""The log of one attempt: raw text, an index of when each part arrived, and a size limit.

The text file is what was printed, byte for byte. The index holds pairs of (offset, microseconds since
1970), one for each stretch of `_STRETCH_SECONDS` in which something arrived, so that a reader finds
the time of a line by bisection and 200,000 lines cost a few hundred entries.
"""

from __future__ import annotations

import os
import struct
from collections import deque

from . import files

ENTRY = struct.Struct("<QQ")
TAIL_BYTES = 64 * 1024
"""Kept from what comes after the limit and added at the end: there the traceback stands."""
_STRETCH_SECONDS = 0.005


class Output:
    def __init__(self, folder: str, limit_bytes: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._log = os.open(os.path.join(folder, files.LOG), flags, 0o600)
        try:
            self._index = os.open(os.path.join(folder, files.INDEX), flags, 0o600)
        except OSError:
            os.close(self._log)
            raise
        self._limit = limit_bytes
        self._size = os.fstat(self._log).st_size
        self._stamped = 0.0
        self._ends_in_newline = True
        self._full = False
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0

    def write(self, data: bytes, now: float) -> None:
        if self._full:
            self._keep_tail(data)
            return
        room = self._limit - self._size
        if len(data) <= room:
            self._append(data, now)
            return
        kept = data[: data.rfind(b"\n", 0, room) + 1] or data[:room]
        self._append(kept, now)
        self._full = True
        self.note(
            f"The log has reached its limit of {self._limit} bytes. What follows is not kept,"
            f" but for its last {TAIL_BYTES} bytes, which are added when the attempt ends.",
            now,
        )
        self._keep_tail(data[len(kept) :])

    def note(self, sentence: str, now: float) -> None:
        """A line of ours in the log, whatever the limit."""
        self._end_line(now)
        self._append(f"[flyte-binary] {sentence}\n".encode(), now)

    def close(self, now: float) -> None:
        if self._tail:
            tail = b"".join(self._tail)
            if self._dropped:
                tail = tail[tail.find(b"\n", 0, len(tail) - 1) + 1 :]
                self.note(f"{self._dropped} bytes are missing here.", now)
            self._append(tail, now)
        self._end_line(now)
        os.close(self._log)
        os.close(self._index)

    def _end_line(self, now: float) -> None:
        if not self._ends_in_newline:
            self._append(b"\n", now)

    def _keep_tail(self, data: bytes) -> None:
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._dropped += gone

    def _append(self, data: bytes, now: float) -> None:
        if not data:
            return
        try:
            if now - self._stamped >= _STRETCH_SECONDS or now < self._stamped:
                os.write(self._index, ENTRY.pack(self._size, int(now * 1_000_000)))
                self._stamped = now
            written = os.write(self._log, data)
            while written < len(data):
                written += os.write(self._log, data[written:])
        except OSError:  # a full disk: the child must not block on its output because of it
            self._size = os.fstat(self._log).st_size
            return
        self._size += len(data)
        self._ends_in_newline = data.endswith(b"\n")
