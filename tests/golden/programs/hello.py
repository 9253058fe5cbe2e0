"""Tasks of the scenarios hello-run-and-wait, deploy and run-deployed."""

import asyncio

import flyte

env = flyte.TaskEnvironment(name="hello_env")


@env.task
async def simple(name: str = "world") -> str:
    greeting = f"hello {name}"
    print(greeting)
    return greeting


@env.task
async def square(x: int) -> int:
    return x * x


@env.task
async def main(n: int = 5) -> int:
    return sum(await asyncio.gather(*(square(x) for x in range(n))))
