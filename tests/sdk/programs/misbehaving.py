"""Tasks that end badly, talk too much, or take what is not theirs."""

import os
import subprocess
import sys
import time
from pathlib import Path

import flyte
import marks

env = flyte.TaskEnvironment(name="misbehaving")
small = flyte.TaskEnvironment(name="small", resources=flyte.Resources(cpu="100m", memory="300Mi"))


@env.task
async def exits() -> None:
    print("about to leave", end="")
    os._exit(3)


@env.task
async def exits_politely() -> None:
    sys.exit(4)


@env.task
async def killed() -> None:
    print("no last words")
    os.kill(os.getpid(), 9)


@env.task
def talks(lines: int) -> int:
    for number in range(lines):
        print(f"line {number}")
    return lines


@env.task
def talks_slowly(release: str) -> None:
    print("before the file")
    Path(f"{release}.begun").touch()
    marks.await_file(release)
    print("after the file")


@small.task
def hog() -> int:
    kept = []
    for megabytes in range(0, 4000, 20):
        print(f"{megabytes} MB")
        kept.append(bytearray(os.urandom(1024) * 1024 * 20))
        time.sleep(0.01)
    return len(kept)


@env.task
def forks(folder: str) -> int:
    """Leaves children behind: one in its own process group, one in a session of its own."""
    for name, apart in (("near", False), ("far", True)):
        script = f"echo 0 $$ > '{folder}/{name}.0'; exec sleep 300"
        subprocess.Popen(["sh", "-c", script], start_new_session=apart)
    for name in ("near", "far"):
        marks.await_file(f"{folder}/{name}.0")
    return os.getpid()
