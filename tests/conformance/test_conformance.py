"""The official Connect conformance suite against the transport: `make test TESTS=tests/conformance`."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from tests.conformance import tools

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
FEWEST_CASES = 300
"""Far fewer would mean that the configuration has excluded cases that nobody meant to."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(480),
    pytest.mark.skipif(tools.missing() is not None, reason=f"needs {tools.missing()}"),
]


async def test_the_official_conformance_suite_passes_and_no_exclusion_is_stale() -> None:
    built = await asyncio.to_thread(tools.build)
    command = [
        *(str(built.runner), "--mode", "server", "--conf", str(HERE / "config.yaml")),
        *("--known-failing", f"@{HERE / 'known_failing.txt'}", "--parallel", "4", "--max-servers", "2", "-v"),
        *("--", sys.executable, "-m", "tests.conformance.server", str(built.contract)),
    ]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=PROJECT,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    report = output.decode(errors="replace")
    assert process.returncode == 0, report[-20_000:]
    total = re.search(r"Total cases: (\d+)", report)
    assert total is not None and int(total[1]) >= FEWEST_CASES, report[-2000:]


def test_every_exclusion_has_its_reason() -> None:
    commented = False
    for line in (HERE / "known_failing.txt").read_text().splitlines()[2:]:
        if line.strip() and not line.startswith("#"):
            assert commented, f"no reason above {line!r}"
        commented = line.startswith("#") or (commented and bool(line.strip()))
