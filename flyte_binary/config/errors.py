"""What is wrong with a configuration: all of it at once, each with its key, where it stands and what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    path: str
    """The full path of the key, such as `runs.server.port`; empty if it is not about one key."""
    origin: str
    """Where it was said: `flyte.yaml:3`, an environment variable, a flag; empty for a default."""
    text: str

    def __str__(self) -> str:
        where = f"{self.path} ({self.origin})" if self.path and self.origin else self.path or self.origin
        return f"{where}: {self.text}" if where else self.text


class ConfigError(Exception):
    """The server does not start; `str()` is the message for the user, one line for each problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        if len(lines) > 1:
            lines = [f"the configuration has {len(lines)} problems:", *(f"  {line}" for line in lines)]
        super().__init__("\n".join(lines))
