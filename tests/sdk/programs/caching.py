"""Results that are kept. The folder of the marks is an input like any other, so tests do not share entries."""

import asyncio

import flyte
import marks

kept = flyte.Cache(behavior="override", version_override="1")
env = flyte.TaskEnvironment(name="kept", cache=kept)
serial = flyte.TaskEnvironment(
    name="serial", cache=flyte.Cache(behavior="override", version_override="1", serialize=True)
)
fresh = flyte.TaskEnvironment(name="fresh", cache=flyte.Cache(behavior="override", version_override="1", max_age=1))
forgetful = flyte.TaskEnvironment(
    name="forgetful", cache=flyte.Cache(behavior="override", version_override="1", ignored_inputs=("note",))
)
parents = flyte.TaskEnvironment(name="caching", depends_on=[env, serial])


@env.task
async def square(folder: str, x: int) -> int:
    marks.leave(folder, "square")
    return x * x


@serial.task
async def slowly(folder: str, x: int) -> int:
    """Not done before the test says so, by the file `go`."""
    marks.leave(folder, "slowly")
    await asyncio.to_thread(marks.await_file, f"{folder}/go")
    return x * x


@fresh.task
async def briefly(folder: str) -> int:
    marks.leave(folder, "briefly")
    return 1


@forgetful.task
async def noted(folder: str, note: str) -> str:
    marks.leave(folder, "noted")
    return note


@parents.task
async def twice(folder: str, x: int) -> int:
    return await square(folder, x) + await square(folder, x)


@parents.task
async def one_slowly(folder: str, x: int) -> int:
    return await slowly(folder, x)
