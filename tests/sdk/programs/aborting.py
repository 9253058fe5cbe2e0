"""A family of processes that goes on until somebody ends it."""

import asyncio
import subprocess

import flyte
import marks

env = flyte.TaskEnvironment(name="aborting", resources=flyte.Resources(cpu="100m"))


@env.task
async def grandchild(folder: str) -> None:
    """With a process of its own that would outlive it."""
    marks.leave(folder, "grandchild")
    process = subprocess.Popen(["sh", "-c", f"echo 0 $$ > '{folder}/sleeper.0'; exec sleep 300"])
    await asyncio.to_thread(process.wait)


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
    task = asyncio.ensure_future(child(folder))
    while not list(__import__("pathlib").Path(folder).glob("sleeper.*")):
        await asyncio.sleep(0.02)
    del task
    return "done"


@env.task
async def gives_up(folder: str) -> str:
    """Cancels its child."""
    waiting = asyncio.ensure_future(child(folder))
    while not list(__import__("pathlib").Path(folder).glob("sleeper.*")):
        await asyncio.sleep(0.02)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    return "gave up"
