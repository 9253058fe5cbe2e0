"""Many children, deep children, children with limits."""

import asyncio
import time
from functools import partial

import flyte
import marks

light = flyte.TaskEnvironment(name="light", resources=flyte.Resources(cpu="100m"))
env = flyte.TaskEnvironment(name="fan", depends_on=[light])


@env.task
async def square(x: int) -> int:
    return x * x


@env.task
async def squares(n: int) -> int:
    with flyte.group("squares"):
        return sum(await asyncio.gather(*(square(x) for x in range(n))))


@env.task
async def down(depth: int) -> int:
    """Each level holds a process that waits for the next."""
    return 0 if depth == 0 else 1 + await down(depth - 1)


@light.task
async def span(x: int) -> list[float]:
    """When it ran, long enough to overlap with whoever runs beside it."""
    began = time.time()
    await asyncio.sleep(0.5)
    return [began, time.time()]


@env.task
async def spans(n: int) -> list[list[float]]:
    return await asyncio.gather(*(span(x) for x in range(n)))


@env.task
async def counted(folder: str, x: int) -> int:
    marks.leave(folder, f"leaf-{x}")
    return x


@env.task
async def count(folder: str, n: int) -> int:
    return sum(await asyncio.gather(*(counted(folder, x) for x in range(n))))


@env.task
def mapped(n: int, offset: int) -> list[int]:
    return list(flyte.map(partial(shifted, offset=offset), range(n), group_name="shift"))


@env.task
def shifted(x: int, offset: int) -> int:
    return x + offset
