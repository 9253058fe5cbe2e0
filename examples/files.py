"""Files between tasks: an asynchronous one writes a text, a synchronous one counts its words line by line.

flyte run examples/files.py main --lines 1000
"""

from collections import Counter

import flyte
from flyte.io import File

env = flyte.TaskEnvironment(name="files")

WORDS = ("run", "action", "task", "trigger", "phase")


@env.task
async def write(lines: int) -> File:
    file = File.new_remote()
    async with file.open("wb") as out:
        for number in range(lines):
            await out.write(f"{number} {WORDS[number % len(WORDS)]}\n".encode())
    return file


@env.task
def count(text: File) -> dict[str, int]:
    counts: Counter[str] = Counter()
    with text.open_sync("rb") as lines:
        for line in lines:
            counts[line.decode().split()[1]] += 1
    return dict(counts)


@env.task
async def main(lines: int = 100) -> dict[str, int]:
    return await count.aio(await write(lines))
