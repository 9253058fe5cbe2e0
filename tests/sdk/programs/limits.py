"""Tasks with too little time."""

import asyncio
from datetime import timedelta

import flyte
import marks

env = flyte.TaskEnvironment(name="limits")
whole = flyte.TaskEnvironment(name="whole", resources=flyte.Resources(cpu=2))


@env.task(timeout=timedelta(seconds=1))
async def too_long(folder: str) -> None:
    marks.leave(folder, "too_long")
    await asyncio.sleep(300)


@env.task(timeout=timedelta(seconds=2), retries=1)
async def at_first_too_long(folder: str) -> int:
    marks.leave(folder, "tried")
    await asyncio.sleep(0 if flyte.ctx().attempt_number else 300)
    return 1


@whole.task
async def takes_all(folder: str) -> None:
    marks.leave(folder, "started")
    await asyncio.to_thread(marks.await_file, f"{folder}/go")


@env.task(timeout=flyte.Timeout(max_queued_time=timedelta(seconds=1)))
async def waits_in_vain() -> None:
    return


@env.task(timeout=flyte.Timeout(deadline=timedelta(seconds=2)), retries=10)
async def over_the_deadline(folder: str) -> None:
    marks.leave(folder, "tried")
    await asyncio.sleep(0.5)
    raise RuntimeError("again")
