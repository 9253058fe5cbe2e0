"""A task of `triggering` in a later version, which has no triggers any more."""

from datetime import datetime

import flyte

env = flyte.TaskEnvironment(name="triggering")


@env.task
async def tick(t: datetime, x: int = 1) -> str:
    return f"{t.isoformat()} {x}"
