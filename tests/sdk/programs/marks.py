"""Marks that tasks leave in a folder of the test, one file a mark: how often, and when, a body ran."""

import os
import time
import uuid
from pathlib import Path


def leave(folder: str, name: str) -> None:
    path = Path(folder) / f"{name}.{uuid.uuid4().hex}"
    path.with_suffix(".writing").write_text(f"{time.time()} {os.getpid()}")
    path.with_suffix(".writing").rename(path)


def count(folder: str, name: str) -> int:
    return len([path for path in Path(folder).glob(f"{name}.*") if path.suffix != ".writing"])


def await_file(path: str, seconds: float = 60) -> None:
    """Until somebody makes the file."""
    deadline = time.monotonic() + seconds
    while not Path(path).exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody made {path}")
        time.sleep(0.02)
