"""Cacheable tasks of the scenarios failing-task, cache-hit-follow-logs and abort-run-early, and one with triggers."""

import time
from datetime import datetime

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


hourly = flyte.Trigger.hourly("t", description="", inputs={"x": 5})
rate = flyte.Trigger(name="rate", automation=flyte.FixedRate(60), inputs={"t": flyte.TriggerTime})


@env.task(triggers=(hourly, rate))
async def tt(t: datetime, x: int = 1) -> str:
    return f"{t} {x}"
