"""The smallest workflows: asynchronous, synchronous, mixed; and one that takes what it is given."""

import flyte

env = flyte.TaskEnvironment(name="hello")


@env.task
async def greet(name: str) -> str:
    print(f"greeting {name}")
    return f"Hello, {name}!"


@env.task
async def main(name: str = "world") -> str:
    return await greet(name)


@env.task
def double(x: int) -> int:
    return 2 * x


@env.task
def quadruple(x: int) -> int:
    """A synchronous parent blocks on a synchronous child."""
    return double(double(x))


@env.task
async def mixed(x: int) -> int:
    """An asynchronous parent awaits a synchronous child."""
    return await double.aio(x) + 1


@env.task
async def nothing() -> None:
    print("nothing to return")


@env.task
async def 挨拶(名前: str, extras: dict[str, str]) -> tuple[str, dict[str, str]]:
    print(f"こんにちは {名前} 👋")
    return f"こんにちは、{名前}", extras
