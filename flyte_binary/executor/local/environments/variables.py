"""References among environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:(?P<plain>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)\})")


def expanded(value: str, variables: Mapping[str, str]) -> str:
    """`$NAME` and `${NAME}` filled in where `variables` has them; others stay as they are."""

    def known(match: re.Match[str]) -> str:
        return variables.get(match["plain"] or match["braced"], match[0])

    return _REFERENCE.sub(known, value)
