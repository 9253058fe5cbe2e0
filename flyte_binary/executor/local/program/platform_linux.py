"""Linux: subreapers, /proc, copy_file_range."""

from __future__ import annotations

import ctypes
import os

_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ARG_START = 45
"""Where, counted from the third field of /proc/<pid>/stat, the addresses of the command line stand."""
_CHILD_OOM_SCORE = b"500"
"""Of -1000..1000; a process at rest has 0. Raising one's own needs no privilege."""


class Linux:
    can_fork = True

    def __init__(self) -> None:
        # Bound before any fork: a child of the fork server must not load libraries on its way.
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl

    def contain(self) -> None:
        self.adopt_orphans()
        try:
            _write("/proc/self/oom_score_adj", _CHILD_OOM_SCORE)
        except OSError:
            pass  # a hardened /proc: the watchdog remains

    def adopt_orphans(self) -> None:
        if self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")

    def show_as(self, command: list[str]) -> None:
        fields = _stat(os.getpid())
        start, end = int(fields[_ARG_START]), int(fields[_ARG_START + 1])
        if start == 0 or end <= start:
            return  # hidden from us
        line = b"\0".join(os.fsencode(word) for word in command)[: end - start - 1]
        ctypes.memmove(start, line.ljust(end - start, b"\0"), end - start)

    def children(self, pid: int) -> list[int]:
        found: list[int] = []
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            return found
        for thread in threads:
            found += [int(child) for child in _read(f"/proc/{pid}/task/{thread}/children").split()]
        return found

    def descendants(self, pid: int) -> list[int]:
        found = self.children(pid)
        for child in found:  # grows while it is walked
            found += self.children(child)
        return found

    def resident_bytes(self, pid: int) -> int:
        total = 0
        for member in [pid, *self.descendants(pid)]:
            fields = _read(f"/proc/{member}/statm").split()
            total += int(fields[1]) * _PAGE if len(fields) > 1 else 0
        return total

    def owned_bytes(self, pid: int) -> int:
        total = 0
        for member in [pid, *self.descendants(pid)]:
            for line in _read(f"/proc/{member}/smaps_rollup").splitlines():
                if line.startswith(b"Pss:"):
                    total += int(line.split()[1]) * 1024
        return total

    def cpu_seconds(self, pid: int) -> float | None:
        ticks = 0
        alive = False
        for member in [pid, *self.descendants(pid)]:
            fields = _stat(member)
            if fields:
                alive = True
                ticks += sum(int(field) for field in fields[11:15])
        return ticks / _TICKS if alive else None

    def memory_kills(self) -> int:
        for line in _read("/proc/vmstat").splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
        return 0

    def birth(self, pid: int) -> str:
        fields = _stat(pid)
        if not fields:
            return ""
        return f"{fields[19].decode()}@{_read('/proc/sys/kernel/random/boot_id').decode().strip()}"

    def thread_count(self) -> int:
        return len(os.listdir("/proc/self/task"))

    def copy_file(self, source: str, target: str) -> None:
        read = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        try:
            write = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                _copy(read, write, os.fstat(read).st_size)
            finally:
                os.close(write)
        finally:
            os.close(read)


def _copy(read: int, write: int, size: int) -> None:
    left = size
    while left > 0:
        try:
            copied = os.copy_file_range(read, write, left)
        except OSError:  # two file systems that cannot do it between them
            copied = os.sendfile(write, read, None, left)
        if copied == 0:
            return
        left -= copied


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/<pid>/stat from the third on (the second, the name, may hold anything)."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    """Empty if the process has gone meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        data = os.read(descriptor, 65_536)
        while data and (more := os.read(descriptor, 65_536)):
            data += more
        return data
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
