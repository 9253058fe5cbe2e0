"""Process start → `/readyz`, beside what importing the SDK takes on the same machine at the same time."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.report import Row
from benchmarks.server_process import clean_environment, running_server

ROUNDS = 5


async def measure(folder: Path) -> list[Row]:
    async with running_server(folder / "warm-up"):
        pass
    first: list[float] = []
    again: list[float] = []
    sdk: list[float] = []
    for number in range(ROUNDS):
        fresh = folder / f"fresh-{number}"
        for found in (first, again):
            async with running_server(fresh) as server:
                found.append(server.ready_after_seconds)
        shutil.rmtree(fresh)
        sdk.append(_import_sdk())
    ready = f"{median(first):.2f} s (at most {max(first):.2f}); {median(again):.2f} s (at most {max(again):.2f})"
    ratios = f"{median(first) / median(sdk):.1f} and {median(again) / median(sdk):.1f} times"
    return [
        Row(
            what="server ready (`/readyz`) from process start, warm disk: new data folder; again",
            wanted="< 3 s first, < 2 s again",
            measured=ready,
            met=max(first) < 3 and max(again) < 2,
            compared=f"{ratios} `python -c 'import flyte'` ({median(sdk):.2f} s, same run); reference 1.8 s",
        )
    ]


def _import_sdk() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import flyte"], check=True, env=clean_environment())
    return time.perf_counter() - began
