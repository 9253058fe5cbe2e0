"""The differences from the reference that we make on purpose, read from `expected_differences.yaml`.

Each entry names the scenarios and the paths it covers, what both sides answer, and why. In `scenarios` and `path` a
star stands for anything within one segment, two stars for anything at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from tests.golden.compare import Difference

EXPECTED = Path(__file__).parent / "expected_differences.yaml"

_UNSAID = object()


@dataclass(frozen=True)
class Expected:
    """One deliberate difference."""

    scenarios: tuple[str, ...]
    path: str
    title: str
    """What differs, in the user's words: one line of the page for humans."""
    reason: str
    kind: str | None = None
    reference: Any = _UNSAID  # any JSON value of either side
    ours: Any = _UNSAID

    def covers(self, scenario: str, difference: Difference) -> bool:
        """Whether this entry explains the difference. A value that the entry states must be the one seen."""
        return (
            self._scenario.fullmatch(scenario) is not None
            and self._path.fullmatch(difference.path) is not None
            and (self.kind is None or self.kind == difference.kind)
            and (self.reference is _UNSAID or self.reference == difference.reference)
            and (self.ours is _UNSAID or self.ours == difference.ours)
        )

    def concerns(self, scenario: str) -> bool:
        """Whether the entry is about this scenario at all."""
        return self._scenario.fullmatch(scenario) is not None

    @cached_property
    def _scenario(self) -> re.Pattern[str]:
        return re.compile("|".join(_regex(name) for name in self.scenarios))

    @cached_property
    def _path(self) -> re.Pattern[str]:
        return re.compile(_regex(self.path))


def load(path: Path = EXPECTED) -> list[Expected]:
    """Every entry, in file order. Raises TypeError or KeyError when one is incomplete."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [entry for group in document for entry in _entries(group)]


def _entries(group: dict[str, Any]) -> list[Expected]:  # a YAML mapping
    return [
        Expected(
            scenarios=tuple(place.pop("scenarios", ["*"])),
            title=group["title"],
            reason=group["reason"],
            **place,
        )
        for place in (dict(entry) for entry in group["where"])
    ]


def _regex(pattern: str) -> str:
    parts = re.split(r"(\*\*|\*)", pattern)
    return "".join({"**": ".*", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts)
