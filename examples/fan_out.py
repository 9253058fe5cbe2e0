"""Many tasks at once: estimate pi by throwing darts in parallel.

flyte run examples/fan_out.py main --workers 20
"""

import asyncio
import random

import flyte

env = flyte.TaskEnvironment(name="fan_out")


@env.task
async def hits(seed: int, darts: int) -> int:
    """How many of the darts land within a quarter of a circle."""
    throw = random.Random(seed).random
    return sum(throw() ** 2 + throw() ** 2 < 1 for _ in range(darts))


@env.task
async def main(workers: int = 10, darts: int = 20_000) -> float:
    with flyte.group("darts"):
        counts = await asyncio.gather(*(hits(seed, darts) for seed in range(workers)))
    return 4 * sum(counts) / (workers * darts)
