"""Tasks of the scenario nested-run: a run that is started inside a task."""

import flyte
from sizes import SMALL

env = flyte.TaskEnvironment(name="nested", resources=SMALL)


@env.task
async def leaf(i: int) -> int:
    return i + 1


@env.task
async def main() -> int:
    run = await flyte.run.aio(leaf, i=5)
    await run.wait.aio(quiet=True)
    return (await run.outputs.aio())[0]
