"""What a task sees of where it runs."""

import os
from pathlib import Path

import flyte

env = flyte.TaskEnvironment(name="surroundings", env_vars={"FROM_TASK": "task", "BOTH": "task"})


@env.task
async def variables(names: list[str]) -> list[str]:
    return [os.environ.get(name, "(unset)") for name in names]


@env.task
async def child_variables(names: list[str]) -> list[str]:
    return await variables(names)


@env.task
async def context() -> dict[str, str]:
    return flyte.get_custom_context()


@env.task
async def child_context() -> dict[str, str]:
    with flyte.custom_context(added="by the parent"):
        return await context()


@env.task
def folder() -> list[str]:
    """Of the attempt: a fresh one with the code in it."""
    Path("leftover").write_text("from an attempt")
    return [str(Path.cwd()), *sorted(path.name for path in Path.cwd().iterdir() if not path.name.startswith("."))]
