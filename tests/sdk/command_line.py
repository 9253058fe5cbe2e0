"""The `flyte` command as a user types it, in the folder of the programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sdk.sdk import PROGRAMS, client_environment

SECONDS = 90
_STYLES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\]8;[^\x1b]*\x1b\\)")
"""Colours and links, which the CLI prints to files too."""

TOGETHER = 2
"""Commands at a time: each is a second of loading the SDK."""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All that a user sees, unwrapped."""
        return " ".join((self.out + self.err).split())

    def json(self) -> Any:
        """What `--output-format json-raw` printed."""
        assert self.code == 0, self.text
        return json.loads(self.out)


class Flyte:
    def __init__(self, config: Path, home: Path, variables: Mapping[str, str] | None = None) -> None:
        """`variables` are more of each command's environment."""
        self._variables = variables or {}
        self._config = config
        self._home = home

    def __call__(self, *arguments: str) -> Done:
        done = subprocess.run(
            [str(Path(sys.executable).parent / "flyte"), "-c", str(self._config), *arguments],
            cwd=PROGRAMS,
            env={**client_environment(self._home), **self._variables},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        return Done(done.returncode, _STYLES.sub("", done.stdout), _STYLES.sub("", done.stderr))

    def all(self, *commands: str) -> list[Done]:
        """Several independent commands, each as one text with words between blanks."""
        with ThreadPoolExecutor(TOGETHER) as pool:
            return list(pool.map(lambda command: self(*command.split()), commands))
