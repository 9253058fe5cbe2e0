"""Task of the scenario trace-ok."""

import flyte
from sizes import SMALL

env = flyte.TaskEnvironment(name="trenv", resources=SMALL)


@flyte.trace
async def t1(x: int) -> int:
    return x


@env.task
async def main() -> float:
    return (await t1(1) + await t1(2)) * 10 + 0.01
