"""Files, folders and large values, in and out; a report."""

import tempfile
from pathlib import Path

import flyte
import flyte.report
from flyte.io import Dir, File

env = flyte.TaskEnvironment(name="data")


@env.task
async def upper(text: File) -> File:
    async with text.open("rb") as source:
        content = bytes(await source.read())
    result = File.new_remote()
    async with result.open("wb") as out:
        await out.write(content.upper())
    return result


@env.task
async def both_ways(text: File) -> File:
    return await upper(await upper(text))


@env.task
def sorted_names(folder: Dir) -> Dir:
    """A folder with a file `names`, made by synchronous code."""
    names = sorted(file.name for file in folder.walk_sync(recursive=True))
    local = Path("result/deep")
    local.mkdir(parents=True)
    (local / "names").write_text("\n".join(names))
    return Dir.from_local_sync("result")


@env.task
def makes_a_file() -> File:
    """In its own folder, which is gone soon, and handed over by the SDK's usual way."""
    Path("made.txt").write_text("made here")
    return File.from_local_sync("made.txt")


@env.task
def makes_a_temporary_file() -> File:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.txt"
        path.write_text("made there")
        return File.from_local_sync(str(path))


@env.task
async def reads_a_temporary_file() -> str:
    made = await makes_a_temporary_file.aio()
    async with made.open("rb") as content:
        return bytes(await content.read()).decode()


@env.task
async def length(text: str) -> int:
    return len(text)


@env.task
async def echo(text: str) -> str:
    return text


@env.task(report=True)
async def reports(steps: int) -> int:
    await flyte.report.log.aio("<h1>Steps</h1>")
    for step in range(steps):
        await flyte.report.log.aio(f"<p>step {step} ✓</p>", do_flush=True)
    return steps


@env.task
async def raw_path() -> str:
    """Where data that is too large for a literal goes."""
    file = File.new_remote()
    async with file.open("wb") as out:
        await out.write(b"raw")
    return file.path
