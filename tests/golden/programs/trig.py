"""Cacheable tasks of the scenarios failing-task, cache-hit-follow-logs and abort-run-early."""

import time

import flyte
from sizes import SMALL

env = flyte.TaskEnvironment(name="trigenv", resources=SMALL, cache="auto")


@env.task
async def fail(msg: str = "x") -> int:
    raise ValueError(msg)


@env.task
def longrun(secs: int = 60) -> int:
    for second in range(secs):
        print(f"line {second}")
        time.sleep(1)
    return secs
