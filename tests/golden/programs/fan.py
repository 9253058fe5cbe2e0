"""Tasks of the scenarios fan-out-5 and ui-watch-streams."""

import asyncio

import flyte
from sizes import SMALL

env = flyte.TaskEnvironment(name="fan", resources=SMALL)


@env.task
async def leaf(i: int) -> int:
    await asyncio.sleep(0.3)  # long enough to be seen running
    return i


@env.task
async def fan(n: int) -> int:
    return sum(await asyncio.gather(*(leaf(i) for i in range(n))))
