"""Placeholders in a task's command: `{{.outputPrefix}}` and its like.

Names are matched without regard to case, `{{ .x }}` and `{{ $x }}` alike; unknown ones stay as they
are (source: reference backend behaviour).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_PLACEHOLDER = re.compile(r"\{\{\s*[.$]([A-Za-z][A-Za-z0-9]*)\s*\}\}")


def render(texts: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """`values` by lower-case name."""

    def replace(match: re.Match[str]) -> str:
        return values.get(match.group(1).lower(), match.group(0))

    return tuple(_PLACEHOLDER.sub(replace, text) if "{{" in text else text for text in texts)
