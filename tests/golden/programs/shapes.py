"""Tasks that end in different ways: an exit code, no outputs, several outputs, success at the second attempt."""

import os
import sys

import flyte
from sizes import SMALL

env = flyte.TaskEnvironment(name="shape_retry", resources=SMALL)


@env.task
async def exit3() -> int:
    sys.stdout.flush()
    os._exit(3)


@env.task
async def nothing() -> None:
    print("no outputs")


@env.task
async def many_out(a: int, b: str) -> tuple[int, str]:
    print("line one")
    print("line two")
    return a, b


@env.task(retries=2)
async def second_time() -> str:
    attempt = os.environ["FLYTE_ATTEMPT_NUMBER"]
    if attempt == "0":
        raise ValueError("not yet")
    return f"ok at {attempt}"
