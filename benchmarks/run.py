"""Runs the measurements one after another and prints their table.

`python -m benchmarks.run [name ...]`; all together also write the table of `docs/performance.md`, as does `--write`.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import (
    app_proxy,
    create_run,
    enqueue,
    fan_out,
    first_update,
    leaf_start,
    many_watches,
    memory,
    reads,
    server_start,
    shutdown,
    two_servers,
    watchers,
)
from benchmarks.report import Row, machine, table, write_page


@dataclass(frozen=True, slots=True)
class Figure:
    measure: Callable[[Path], Awaitable[list[Row]]]
    within_seconds: float
    """Longer, and the figure is given up."""


FIGURES = {
    "start": Figure(server_start.measure, 90),
    "memory": Figure(memory.measure, 900),
    "leaf": Figure(leaf_start.measure, 180),
    "fan-out": Figure(fan_out.measure, 420),
    "enqueue": Figure(enqueue.measure, 60),
    "first-update": Figure(first_update.measure, 90),
    "create-run": Figure(create_run.measure, 60),
    "watchers": Figure(watchers.measure, 90),
    "shutdown": Figure(shutdown.measure, 90),
    "many-watches": Figure(many_watches.measure, 90),
    "reads": Figure(reads.measure, 600),
    "two-servers": Figure(two_servers.measure, 120),
    "app-proxy": Figure(app_proxy.measure, 120),
}


def main(argv: Sequence[str] | None = None) -> int:
    """0 if every demand was met."""
    arguments = _parser().parse_args(argv)
    names = arguments.names or list(FIGURES)
    folder = Path(tempfile.mkdtemp(prefix="flyte-binary-bench-", dir=arguments.folder))
    try:
        facts = machine(folder)
        print(facts, flush=True)
        rows = [row for name in names for row in _measure(name, folder / name)]
    finally:
        if arguments.keep:
            print(f"data and logs stay in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    made = table(rows)
    print(f"\n{made}")
    if arguments.write or not arguments.names:
        write_page(f"{facts}\n\n{made}")
    return 0 if all(row.met is not False for row in rows) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*FIGURES, []], metavar="name", help=", ".join(FIGURES))
    parser.add_argument("--folder", help="where the servers keep their data; on the disk that you mean to measure")
    parser.add_argument("--keep", action="store_true", help="keep data and logs of the servers")
    parser.add_argument("--write", action="store_true", help="write the table of docs/performance.md")
    return parser


def _measure(name: str, folder: Path) -> list[Row]:
    figure = FIGURES[name]
    print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
    began = time.perf_counter()
    folder.mkdir()
    try:
        rows = asyncio.run(asyncio.wait_for(_call(figure, folder), figure.within_seconds))
    except Exception as error:  # noqa: BLE001 - whatever keeps one figure from being measured, the others still are
        traceback.print_exc()
        rows = [Row(what=name, wanted="", measured=f"not measured: {type(error).__name__}", met=False)]
    print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    for row in rows:
        print(f"    {row.what}: {row.measured}", file=sys.stderr, flush=True)
    return rows


async def _call(figure: Figure, folder: Path) -> list[Row]:
    return await figure.measure(folder)


if __name__ == "__main__":
    raise SystemExit(main())
