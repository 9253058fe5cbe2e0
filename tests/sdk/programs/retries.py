"""Tasks that fail, and how they are tried again."""

import os
from datetime import timedelta

import flyte
import flyte.errors
import marks

env = flyte.TaskEnvironment(name="retries")
paced = flyte.RetryStrategy(
    count=3, backoff=flyte.Backoff(base=timedelta(seconds=0.4), factor=2.0, cap=timedelta(seconds=0.8))
)


def attempt() -> int:
    return int(os.environ["FLYTE_ATTEMPT_NUMBER"])


@env.task(retries=3)
async def third_time(folder: str) -> int:
    marks.leave(folder, f"attempt-{attempt()}")
    print(f"this is attempt number {attempt() + 1}")
    if attempt() < 2:
        raise RuntimeError(f"not at attempt {attempt() + 1}")
    return attempt() + 1


@env.task(retries=1)
async def never(folder: str) -> None:
    marks.leave(folder, "never")
    raise ValueError(f"no, says attempt {attempt() + 1}")


@env.task(retries=5)
async def hopeless(folder: str) -> None:
    marks.leave(folder, "hopeless")
    raise flyte.errors.NonRecoverableError(message="there is no point")


@env.task(retries=paced)
async def patient(folder: str) -> int:
    marks.leave(folder, f"attempt-{attempt()}")
    if attempt() < 3:
        raise RuntimeError("again")
    return attempt()


@env.task(retries=2)
async def resumes() -> list[str]:
    """Counts on from where the attempt before stopped."""
    checkpoint = flyte.ctx().checkpoint
    before = await checkpoint.load()
    done = before.read_text().split() if before is not None and before.is_file() else []
    done.append(f"attempt-{attempt()}")
    await checkpoint.save(" ".join(done).encode())
    if attempt() < 2:
        raise RuntimeError("stopped")
    return done


@env.task
async def leaf(folder: str, fails: bool) -> str:
    marks.leave(folder, "fails" if fails else "works")
    if fails and marks.count(folder, "fails") < 2:
        raise RuntimeError("the first time")
    return "fine"


@env.task(retries=1)
async def second_try(folder: str) -> list[str]:
    """Of a parent: the child that failed runs again, the one that succeeded does not."""
    return [await leaf(folder, False), await leaf(folder, True)]


@env.task
async def catches(folder: str) -> str:
    try:
        await never(folder)
    except flyte.errors.RuntimeUserError as error:
        return f"{error.code}: {error}"
    except Exception as error:  # noqa: BLE001 - the outcome is the result, whatever it is
        return f"{type(error).__name__}: {error}"
    return "no error"
