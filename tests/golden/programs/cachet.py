"""Tasks of the cache scenarios."""

import flyte
from sizes import SMALL

env = flyte.TaskEnvironment(name="cachet", resources=SMALL, cache="auto")
serialized = flyte.TaskEnvironment(name="cacheser", resources=SMALL, cache=flyte.Cache(behavior="auto", serialize=True))
parents = flyte.TaskEnvironment(name="cacheparent", resources=SMALL, depends_on=[env])


@env.task
async def sq(x: int) -> int:
    return x * x


@serialized.task
async def sersq(x: int) -> int:
    return x * x


@parents.task
async def twice(x: int) -> int:
    first = await sq(x)
    return first + await sq(x)
