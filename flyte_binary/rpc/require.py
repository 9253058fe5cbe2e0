"""Identifiers that a request must carry, checked once and turned into ours.

The bounds are those of the contract (`buf.validate` rules of flyteidl2), but for the organisation, which may be absent
(`domain/ids.py`).
"""

from __future__ import annotations

from flyteidl2.common import identifier_pb2

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import ActionId, RunId

LONGEST_NAME = 63
"""Characters in the name of a project or domain."""

LONGEST_RUN_NAME = 30
"""Characters in the name of a run or an action."""


def require_run_id(identifier: identifier_pb2.RunIdentifier, field: str) -> RunId:
    """Raises `InvalidArgument`, which names the part of `field` that is wrong."""
    _require_name(identifier.project, f"{field}.project", LONGEST_NAME)
    _require_name(identifier.domain, f"{field}.domain", LONGEST_NAME)
    _require_name(identifier.name, f"{field}.name", LONGEST_RUN_NAME)
    return RunId(identifier.project, identifier.domain, identifier.name)


def require_action_id(identifier: identifier_pb2.ActionIdentifier, field: str) -> ActionId:
    """Raises `InvalidArgument`, which names the part of `field` that is wrong."""
    run = require_run_id(identifier.run, f"{field}.run")
    _require_name(identifier.name, f"{field}.name", LONGEST_RUN_NAME)
    return run.action(identifier.name)


def _require_name(name: str, field: str, longest: int) -> None:
    if not name:
        raise InvalidArgument(f"{field} is required")
    if len(name) > longest:
        raise InvalidArgument(f"{field}: at most {longest} characters, got {len(name)}")
    if "\0" in name or "/" in name:
        raise InvalidArgument(f"{field}: a name has neither slash nor NUL, got {name!r}")
