"""Gets the programs that tests start beside the server, each pinned, once, under .cache/parts of the checkout.

Nothing of them is kept in the project. Several test processes that want one at the same time wait for the first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

LOCKED = Path(__file__).parent / "locked"
CACHE = LOCKED.parents[2] / ".cache" / "parts"


def go_program(module: str, version: str) -> Path:
    """The program of a Go module; a minute or two the first time."""
    name = module.rpartition("/")[2]

    def build(folder: Path) -> None:
        _require("go", "Go (https://go.dev)", name)
        run("go", "install", f"{module}@{version}", environment={"GOBIN": str(folder)})

    return built(f"{name}-{version}", build) / name


def python_environment(name: str, version: str) -> Path:
    """The `bin` of a virtual environment with what `locked/<name>/requirements.lock` pins."""

    def build(folder: Path) -> None:
        uv = Path(sys.executable).with_name("uv")
        run(str(uv), "venv", "--quiet", "--python", sys.executable, str(folder))
        lock = LOCKED / name / "requirements.lock"
        python = str(folder / "bin" / "python")
        run(str(uv), "pip", "install", "--quiet", "--require-hashes", "--python", python, "-r", str(lock))

    return built(f"{name}-{version}", build) / "bin"


def node_program(name: str, version: str, script: str) -> Path:
    """A script below the `node_modules` that `locked/<name>/package-lock.json` pins."""

    def build(folder: Path) -> None:
        _require("npm", "Node.js with npm (https://nodejs.org)", name)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(LOCKED / name / file, folder / file)
        run("npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", folder=folder)

    return built(f"{name}-{version}", build) / "node_modules" / script


def built(name: str, build: Callable[[Path], None]) -> Path:
    """The folder in which `build` was done. Raises `AssertionError` with what it said if it fails."""
    folder = CACHE / name
    ready = folder / ".ready"
    if ready.exists():
        return folder
    with _alone(name):
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            build(folder)
            ready.touch()
    return folder


@contextmanager
def _alone(name: str) -> Generator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _require(program: str, what: str, wanted_for: str) -> None:
    assert shutil.which(program), f"these tests start {wanted_for}; to build it, install {what} first"


def run(*command: str, environment: dict[str, str] | None = None, folder: Path = CACHE) -> None:
    done = subprocess.run(
        command, env=os.environ | (environment or {}), cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}"


def build_all() -> None:
    """Everything, before the tests, which have less time. What cannot be built is told here, and fails those that
    need it."""
    from tests.parts import azurite, debian, gcs, moto, versitygw  # noqa: PLC0415  # they import this module

    for program in (
        *(part.program for part in (versitygw, moto, gcs, azurite)),
        debian.nginx,
        debian.haproxy,
    ):
        try:
            program()
        except AssertionError as error:
            print(f"tests: {error}", file=sys.stderr)


if __name__ == "__main__":
    build_all()
