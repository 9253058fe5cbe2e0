"""Any POSIX system, by psutil: cold processes only, and no hold on descendants that left the process group."""

from __future__ import annotations

import shutil
import threading

import psutil


class Portable:
    can_fork = False

    def contain(self) -> None:
        """Nothing to ask for."""

    def adopt_orphans(self) -> None:
        """They go to the system's first process."""

    def show_as(self, command: list[str]) -> None:
        """Forked children only need it."""

    def children(self, pid: int) -> list[int]:
        return _descendants(pid, recursive=False)

    def descendants(self, pid: int) -> list[int]:
        return _descendants(pid, recursive=True)

    def resident_bytes(self, pid: int) -> int:
        total = 0
        for member in [pid, *self.descendants(pid)]:
            try:
                total += psutil.Process(member).memory_info().rss
            except psutil.Error:
                continue
        return total

    def owned_bytes(self, pid: int) -> int:
        total = 0
        for member in [pid, *self.descendants(pid)]:
            try:
                total += psutil.Process(member).memory_full_info().uss
            except psutil.Error:
                continue
        return total

    def cpu_seconds(self, pid: int) -> float | None:
        total = 0.0
        alive = False
        for member in [pid, *self.descendants(pid)]:
            try:
                times = psutil.Process(member).cpu_times()
            except psutil.Error:
                continue
            alive = True
            total += times.user + times.system + times.children_user + times.children_system
        return total if alive else None

    def memory_kills(self) -> int:
        return 0

    def birth(self, pid: int) -> str:
        try:
            return str(psutil.Process(pid).create_time())
        except psutil.Error:
            return ""

    def thread_count(self) -> int:
        return threading.active_count()

    def copy_file(self, source: str, target: str) -> None:
        shutil.copyfile(source, target)


def _descendants(pid: int, *, recursive: bool) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=recursive)]
    except psutil.Error:
        return []
