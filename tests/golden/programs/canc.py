"""Tasks that are cancelled, aborted, fail at every attempt or take longer than they may."""

import asyncio
from datetime import timedelta

import flyte
from sizes import SMALL

env = flyte.TaskEnvironment(name="canc", resources=SMALL)


@env.task
async def slow(s: int) -> int:
    await asyncio.sleep(s)
    return s


@env.task
async def main() -> str:
    try:
        await asyncio.wait_for(slow(30), timeout=1)
    except TimeoutError:
        await asyncio.sleep(0.5)  # long enough to hear on the watch what became of the child
        return "timed out as expected"
    return "not timed out"


@env.task
async def main2() -> str:
    try:
        await slow(60)
    except Exception as error:  # noqa: BLE001 - the outcome is the result, whatever it is
        return f"aborted {error}"
    return "child ended by itself"


@env.task(retries=2)
async def flaky() -> int:
    raise ValueError("flaky")


@env.task(timeout=timedelta(seconds=2))
async def tmo() -> int:
    await asyncio.sleep(20)
    return 1
