"""Identifiers that a request must carry, checked once and turned into ours.

The bounds are those of the contract (`buf.validate` rules of flyteidl2), but for the organisation, which may be absent
(`domain/ids.py`).
"""

from __future__ import annotations

from flyteidl2.common import identifier_pb2

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import ActionId, ProjectId, RunId

LONGEST_NAME = 63
"""Characters in the name of a project or domain."""

LONGEST_RUN_NAME = 30
"""Characters in the name of a run or an action."""


def require_project_id(identifier: identifier_pb2.ProjectIdentifier, field: str = "project_id") -> ProjectId:
    """Raises `InvalidArgument`, which names the part of `field` that is wrong."""
    project = require_name(identifier.name, f"{field}.name")
    return ProjectId(project, require_name(identifier.domain, f"{field}.domain"))


def require_run_id(identifier: identifier_pb2.RunIdentifier, field: str = "run_id") -> RunId:
    """Raises `InvalidArgument`, which names the part of `field` that is wrong."""
    project = require_name(identifier.project, f"{field}.project")
    domain = require_name(identifier.domain, f"{field}.domain")
    return RunId(project, domain, require_name(identifier.name, f"{field}.name", longest=LONGEST_RUN_NAME))


def require_action_id(identifier: identifier_pb2.ActionIdentifier, field: str = "action_id") -> ActionId:
    """Raises `InvalidArgument`, which names the part of `field` that is wrong."""
    run = require_run_id(identifier.run, f"{field}.run")
    return run.action(require_name(identifier.name, f"{field}.name", longest=LONGEST_RUN_NAME))


def require_name(name: str, field: str, *, longest: int = LONGEST_NAME) -> str:
    """A name that may become part of a key and of a path. Raises `InvalidArgument`, which names `field`."""
    require_text(name, field, longest=longest)
    if "/" in name or name in (".", ".."):
        raise InvalidArgument(f"{field}: a name has no slash and is not a dot, got {name!r}")
    return name


def require_text(text: str, field: str, *, longest: int) -> str:
    """Some text, at most `longest` characters, that both databases can store. Raises `InvalidArgument`, which names
    `field`."""
    if not text:
        raise InvalidArgument(f"{field} is required")
    if len(text) > longest:
        raise InvalidArgument(f"{field}: at most {longest} characters, got {len(text)}")
    return storable(text, field)


def storable(text: str, field: str) -> str:
    """Any text that both databases can store. Raises `InvalidArgument` for NUL, which PostgreSQL refuses (and binary
    protobuf has already refused what is not UTF-8; a lone surrogate can still come in through JSON)."""
    if "\0" in text:
        raise InvalidArgument(f"{field} must not contain the NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{field} is not valid Unicode text") from None
    return text
