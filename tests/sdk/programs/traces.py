"""Steps inside a task that are recorded, and replayed when the task is tried again."""

import os

import flyte
import marks

env = flyte.TaskEnvironment(name="traces")


@flyte.trace
async def step(folder: str, x: int) -> int:
    marks.leave(folder, f"step-{x}")
    return x + 1


@flyte.trace
async def bad(folder: str, x: int) -> int:
    marks.leave(folder, f"bad-{x}")
    raise ValueError(f"{x} is not good")


@env.task
async def child(folder: str, x: int) -> int:
    marks.leave(folder, "child")
    return 10 * x


@env.task
async def steps(folder: str) -> int:
    return await step(folder, 1) * 10 + await step(folder, 2)


@env.task
async def survives(folder: str) -> str:
    try:
        await bad(folder, 7)
    except Exception as error:  # noqa: BLE001 - the outcome is the result, whatever it is
        return f"{type(error).__name__}: {error}"
    return "not failed"


@env.task(retries=1)
async def again(folder: str) -> int:
    """Its first attempt dies after a step and a child that went well."""
    done = await step(folder, 1) + await child(folder, 3)
    if os.environ["FLYTE_ATTEMPT_NUMBER"] == "0":
        raise RuntimeError("the first attempt")
    return done
