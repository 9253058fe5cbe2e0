"""Submitted as a notebook does: pickled, not bundled."""

import flyte

env = flyte.TaskEnvironment(name="interactive")
FACTOR = 3


@env.task
async def times(x: int) -> int:
    return FACTOR * x


@env.task
async def main(x: int) -> int:
    return await times(await times(x))
