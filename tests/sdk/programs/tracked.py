"""A parent with children, a trace, a retry and a report, run on the client's machine."""

import flyte
import flyte.report

env = flyte.TaskEnvironment("tracked")
_tries: list[int] = []


@flyte.trace
async def noted(x: int) -> int:
    return x + 1


@env.task(retries=2)
async def flaky(x: int) -> int:
    _tries.append(x)
    if len(_tries) < 2:
        raise ValueError("the first try fails")
    return x * 2


@env.task(report=True)
async def parent(x: int) -> int:
    await flyte.report.replace.aio("<b>so far</b>")
    await flyte.report.flush.aio()
    doubled = await flaky(x)
    result = await noted(doubled)
    await flyte.report.replace.aio("<b>all done</b>")
    await flyte.report.flush.aio()
    return result


@env.task
async def broken() -> None:
    raise RuntimeError("this task is broken")
