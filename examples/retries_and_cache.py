"""A task that fails at first, and one whose result is kept: run it twice, and `slow` answers at once.

flyte run examples/retries_and_cache.py main --word flyte
"""

import asyncio
import os

import flyte

env = flyte.TaskEnvironment(name="retries_and_cache")


@env.task(retries=3)
async def flaky() -> int:
    """Succeeds at the third attempt."""
    attempt = int(os.environ.get("FLYTE_ATTEMPT_NUMBER", "2"))
    if attempt < 2:
        raise RuntimeError(f"attempt {attempt + 1} was not the lucky one")
    return attempt + 1


@env.task(cache=flyte.Cache(behavior="override", version_override="1"))
async def slow(word: str) -> str:
    await asyncio.sleep(2)
    return word[::-1]


@env.task
async def main(word: str = "flyte") -> str:
    attempts, reversed_word = await asyncio.gather(flaky(), slow(word))
    return f"{reversed_word}, after {attempts} attempts"
