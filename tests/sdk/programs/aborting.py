"""A family of processes that goes on until somebody ends it."""

import asyncio

import flyte
import marks

env = flyte.TaskEnvironment(name="aborting", resources=flyte.Resources(cpu="100m"))


@env.task
async def grandchild(folder: str) -> None:
    """With a process of its own that would outlive it."""
    marks.leave(folder, "grandchild")
    script = f"echo 0 $$ > '{folder}/sleeper.0'; exec sleep 300"
    process = await asyncio.create_subprocess_exec("sh", "-c", script)
    await process.wait()


@env.task
async def child(folder: str) -> None:
    marks.leave(folder, "child")
    await grandchild(folder)


@env.task
async def family(folder: str) -> str:
    marks.leave(folder, "parent")
    try:
        await child(folder)
    except flyte.errors.ActionAbortedError as error:
        return f"survived {type(error).__name__}"
    return "child ended by itself"


@env.task
async def leaves_behind(folder: str) -> str:
    """Ends while its child goes on."""
    waiting = asyncio.ensure_future(child(folder))
    await asyncio.to_thread(marks.await_file, f"{folder}/sleeper.0")
    return f"left {type(waiting).__name__}"


@env.task
async def gives_up(folder: str) -> str:
    """Cancels its child."""
    waiting = asyncio.ensure_future(child(folder))
    await asyncio.to_thread(marks.await_file, f"{folder}/sleeper.0")
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    return "gave up"
