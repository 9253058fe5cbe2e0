"""Drives the unmodified SDK against a server under measurement."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.server_process import ServerProcess, clean_environment

PROGRAMS = Path(__file__).parent / "programs"


class DriverFailed(Exception):
    """The SDK's process ended with an error; the message is what it printed."""


@dataclass(frozen=True, slots=True)
class Driven:
    run: str
    seconds: float = 0.0
    """From `flyte.run` to the result in hand."""
    result: int = 0


async def drive(server: ServerProcess, task: str, argument: float) -> Driven:
    """Raises `DriverFailed`."""
    # The SDK remembers for a day, by address, which code it has uploaded: it gets a home that goes with the server.
    environment = {**clean_environment(), "HOME": str(server.data_dir / "home")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "drive.py", f"127.0.0.1:{server.port}", task, str(argument)),
        cwd=PROGRAMS,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, errors = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise DriverFailed(errors.decode(errors="replace"))
    return Driven(**json.loads(out.splitlines()[-1]))
