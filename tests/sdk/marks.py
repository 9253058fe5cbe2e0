"""Reads the marks that tasks leave, see `programs/marks.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mark:
    name: str
    seconds: float
    """When, since the epoch."""
    pid: int


def marks(folder: Path, pattern: str) -> list[Mark]:
    """In the order of time. `pattern` is of the name, without the part that makes it unique."""
    found = [path for path in folder.glob(f"{pattern}.*") if path.suffix != ".writing"]
    read = [(path.name.rpartition(".")[0], *path.read_text(encoding="utf-8").split()) for path in found]
    return sorted((Mark(name, float(at), int(pid)) for name, at, pid in read), key=lambda mark: mark.seconds)


def count(folder: Path, pattern: str) -> int:
    return len(marks(folder, pattern))
