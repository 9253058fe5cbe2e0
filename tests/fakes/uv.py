"""A program that stands for `uv`: makes environments without packages, tells what it was asked, fails on demand."""

from __future__ import annotations

import sys
from pathlib import Path

_PROGRAM = """\
#!{python} -S
import os, pathlib, sys, time

here = pathlib.Path({folder!r})
with (here / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
if "unfindable" in sys.argv:
    sys.exit("error: there is no unfindable")
if sys.argv[1] == "venv":
    python = pathlib.Path(sys.argv[-1], "bin/python")
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\\necho 2.12.1\\n")
    python.chmod(0o755)
    while (here / "hold").exists():
        time.sleep(0.01)
if "show" in sys.argv:
    print("COLOUR is", os.environ.get("COLOUR"), "VIRTUAL_ENV is", os.environ.get("VIRTUAL_ENV"))
"""


class FakeUv:
    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.path = folder / "uv"
        self.path.write_text(_PROGRAM.format(python=sys.executable, folder=str(folder)), encoding="utf-8")
        self.path.chmod(0o755)

    def calls(self, command: str = "") -> list[str]:
        """What it was called with, in order; only those that begin with `command`."""
        log = self._folder / "calls"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [line for line in lines if line.startswith(command)]

    def hold(self) -> None:
        """From here on it stops in the middle of making an environment."""
        (self._folder / "hold").touch()

    def go_on(self) -> None:
        (self._folder / "hold").unlink()
