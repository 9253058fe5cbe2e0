"""A run that fails at one of its children until a file exists."""

import asyncio
from pathlib import Path

import flyte
import marks

env = flyte.TaskEnvironment(name="recovering")


@env.task
async def part(folder: str, x: int) -> int:
    if folder:
        marks.leave(folder, f"part-{x}")
    if x == 2 and not (Path(folder) / "repaired").exists():
        raise RuntimeError("part 2 is broken")
    return x


@env.task
async def whole(folder: str, factor: int = 1) -> int:
    marks.leave(folder, "whole")
    parts = [await part(folder, 0), await part(folder, 1)]
    return factor * sum(parts + await asyncio.gather(part(folder, 2)))
