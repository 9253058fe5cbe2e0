"""What the local executor asks of the operating system, and the one place where the answer is chosen."""

from __future__ import annotations

import sys
from typing import Protocol


class Platform(Protocol):
    can_fork: bool
    """Whether a process that has the SDK imported may be forked without exec (not on macOS)."""

    def contain(self) -> None:
        """Called in a child: orphans among its descendants stay below it, and it is killed before others
        when memory runs out."""
        ...

    def adopt_orphans(self) -> None:
        """Called in the supervisor: what an ended child leaves behind becomes its own child."""
        ...

    def show_as(self, command: list[str]) -> None:
        """What `ps` shows of this process, instead of what it was started with; cut to fit."""
        ...

    def children(self, pid: int) -> list[int]: ...

    def descendants(self, pid: int) -> list[int]:
        """Without `pid` itself; parents before their children."""
        ...

    def resident_bytes(self, pid: int) -> int:
        """Memory of `pid` and its descendants, pages that several of them share counted for each: cheap."""
        ...

    def owned_bytes(self, pid: int) -> int:
        """The same with shared pages divided among those who share them: exact and slow."""
        ...

    def cpu_seconds(self, pid: int) -> float | None:
        """Of `pid` and its descendants, and of those of them that were waited for."""
        ...

    def memory_kills(self) -> int:
        """How often this machine's kernel has killed for memory; 0 where it does not tell."""
        ...

    def birth(self, pid: int) -> str:
        """Together with `pid` names one process for ever; empty if there is none."""
        ...

    def thread_count(self) -> int: ...

    def copy_file(self, source: str, target: str) -> None:
        """The content only, sharing blocks where the file system can; never a hard link."""
        ...


def choose(name: str = "auto") -> Platform:
    """`auto`, or `portable` to do without what only Linux has."""
    if name == "auto" and sys.platform == "linux":
        from .platform_linux import Linux  # noqa: PLC0415  # the other one does not load here, and the reverse

        return Linux()
    from .platform_portable import Portable  # noqa: PLC0415

    return Portable()
