"""The tasks that the measurements run: leaves that do nothing, and their parents."""

import asyncio
import time

import flyte

env = flyte.TaskEnvironment(name="bench")


@env.task
async def leaf(i: int) -> float:
    """When it began, on the machine's clock."""
    del i
    return time.time()


@env.task
async def fan(n: int) -> int:
    return len(await asyncio.gather(*(leaf(i) for i in range(n))))


@env.task
async def hold(seconds: float) -> float:
    """Calls one leaf, then stays, so that others can be asked for below it."""
    began = await leaf(0)
    await asyncio.sleep(seconds)
    return began
