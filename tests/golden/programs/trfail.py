"""Task of the scenario trace-failed."""

import flyte
from sizes import SMALL

env = flyte.TaskEnvironment(name="trfail", resources=SMALL)


@flyte.trace
async def ok(x: int) -> int:
    return x + 1


@flyte.trace
async def bad(x: int) -> int:
    raise ValueError("trace boom")


@env.task
async def main() -> str:
    good = await ok(1)
    try:
        await bad(2)
    except Exception as error:  # noqa: BLE001 - the outcome is the result, whatever it is
        return f"{good} {type(error).__name__}: {error}"
    return "not failed"
