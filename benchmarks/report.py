"""The table: what was asked for, what was measured, on which machine."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
PAGE = Path(__file__).parent.parent / "docs" / "performance.md"

BUSY_LOAD = 0.5
_IF_BUSY = " (**the machine was busy: these figures say more about that than about the server**)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    what: str
    wanted: str
    measured: str
    met: bool | None
    """None where nothing is demanded."""
    compared: str = ""
    """With what in the same run, or with the reference backend's own figure."""


def table(rows: Sequence[Row]) -> str:
    lines = ["| what | wanted | measured | | compared |", "|---|---|---|---|---|"]
    for row in rows:
        mark = {True: "met", False: "**missed**", None: ""}[row.met]
        lines.append(f"| {row.what} | {row.wanted} | {row.measured} | {mark} | {row.compared} |")
    return "\n".join(lines)


def machine(folder: Path) -> str:
    """What the figures depend on, as Markdown; measures the disk under `folder` for a moment."""
    packages = ("flyte", "flyteidl2", "sqlalchemy", "uvicorn", "protobuf")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    facts = [
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, commit {_commit()}",
        f"{_processor()}, {os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB; "
        f"{platform.platform()}",
        f"load average before: {os.getloadavg()[0]:.2f}{_IF_BUSY if os.getloadavg()[0] > BUSY_LOAD else ''}",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {versions}",
        f"data on {_filesystem(folder)}; writing 4 KiB and fsync: {_fsync_milliseconds(folder):.2f} ms (median of 200)",
    ]
    return "\n".join(f"* {fact}" for fact in facts)


def write_page(section: str) -> None:
    """Replace what stands between the marks of `docs/performance.md`."""
    page = PAGE.read_text()
    head, tail = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:head]}\n\n{section}\n\n{page[tail:]}")


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PAGE.parent)
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1] if match else platform.machine()


def _filesystem(folder: Path) -> str:
    mounts = [part for part in psutil.disk_partitions(all=True) if folder.resolve().is_relative_to(part.mountpoint)]
    deepest = max(mounts, key=lambda part: len(part.mountpoint), default=None)
    return "an unknown file system" if deepest is None else deepest.fstype


def _fsync_milliseconds(folder: Path) -> float:
    path = folder / "fsync-probe"
    took: list[float] = []
    with path.open("wb") as file:
        for _ in range(200):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    path.unlink()
    return sorted(took)[len(took) // 2]
