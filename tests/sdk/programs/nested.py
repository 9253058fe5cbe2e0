"""A run that a task starts."""

import flyte

env = flyte.TaskEnvironment(name="nested")


@env.task
async def inner(x: int) -> int:
    return x + 1


@env.task
async def outer(x: int) -> tuple[str, int]:
    run = await flyte.run.aio(inner, x=x)
    await run.wait.aio(quiet=True)
    return run.name, (await run.outputs.aio())[0]
