"""Imports well where it is submitted, and not where it runs."""

import os

import flyte

if "ACTION_NAME" in os.environ:
    import a_package_that_does_not_exist  # noqa: F401  # pyright: ignore[reportMissingImports]

env = flyte.TaskEnvironment(name="broken")


@env.task(retries=1)
async def main() -> None:
    return
