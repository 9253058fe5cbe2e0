"""The smallest workflow: one task that calls another.

flyte run examples/hello.py main --name Ada
"""

import flyte

env = flyte.TaskEnvironment(name="hello")


@env.task
async def greet(name: str) -> str:
    print(f"greeting {name}")
    return f"Hello, {name}!"


@env.task
async def main(name: str = "world") -> str:
    return await greet(name)
