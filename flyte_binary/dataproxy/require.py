"""What a request must name, checked before anything is done, with the field in the error."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from flyteidl2.common import identifier_pb2
from google.protobuf.duration_pb2 import Duration

from flyte_binary.dataproxy.ports import Projects
from flyte_binary.domain.errors import InvalidArgument, NotFound
from flyte_binary.domain.ids import ActionId, AttemptId, ProjectId


class KnownProjects:
    def __init__(self, projects: Projects, domains: Collection[str]) -> None:
        self._projects = projects
        self._domains = domains

    async def require(self, scope: ProjectId, *, field: str = "") -> None:
        """Raises `InvalidArgument` for what is empty, `NotFound` for what does not exist."""
        prefix = f"{field}." if field else ""
        _require_text(scope.project, f"{prefix}project")
        _require_text(scope.domain, f"{prefix}domain")
        if scope.domain not in self._domains:
            known = ", ".join(sorted(self._domains))
            raise NotFound(f'domain "{scope.domain}" not found; this server has {known}')
        if not await self._projects.exists(scope.project):
            raise NotFound(f'project "{scope.project}" not found')


def action_id(message: identifier_pb2.ActionIdentifier, field: str = "action_id") -> ActionId:
    _require_text(message.run.project, f"{field}.run.project")
    _require_text(message.run.domain, f"{field}.run.domain")
    _require_text(message.run.name, f"{field}.run.name")
    _require_text(message.name, f"{field}.name")
    return ActionId.from_proto(message)


def attempt_id(message: identifier_pb2.ActionIdentifier, number: int, field: str = "action_id") -> AttemptId:
    if number < 1:
        raise InvalidArgument("attempt is 0; attempts are counted from 1")
    return action_id(message, field).attempt(number)


def lifetime(duration: Duration | None) -> timedelta | None:
    """`expires_in` of a request; None if it is not set. Raises `InvalidArgument` unless it is above zero."""
    if duration is None:
        return None
    try:
        asked = duration.ToTimedelta()
    except (ValueError, OverflowError) as error:
        raise InvalidArgument(f"expires_in is no valid duration: {error}") from error
    if asked <= timedelta():
        raise InvalidArgument(f"expires_in is {asked.total_seconds():g} s; it must be above zero")
    return asked


def _require_text(value: str, field: str) -> None:
    if not value:
        raise InvalidArgument(f"{field} is required")
    if "\0" in value:
        raise InvalidArgument(f"{field} contains a NUL character")
