"""Where apps run: the seam between what the database wants and Knative, or processes of this machine.

The database is the truth. A pass over one app (`app/reconciler.py`) is level-triggered: it asks for the same deploy
again and again, so a deploy of what is deployed writes nothing, and absent is a state and not an error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from flyteidl2.app import app_definition_pb2

from flyte_binary.domain.ids import AppId
from flyte_binary.domain.logs import LogLine

DeploymentStatus = app_definition_pb2.Status.DeploymentStatus
Substate = app_definition_pb2.Status.Substate


@dataclass(frozen=True, slots=True, kw_only=True)
class AppDefinition:
    """What should be there; made from the row."""

    id: AppId
    org: str
    """As the client sent it; shown again, part of no name."""

    spec: app_definition_pb2.Spec
    """As the client sent it, unknown fields included."""

    sha: str
    """`domain.apps.spec_sha` of the spec."""

    revision: int
    """Counted from 1; grows with every change of the spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppCondition:
    status: DeploymentStatus
    message: str
    since: datetime
    substate: Substate = Substate.SUBSTATE_UNSPECIFIED
    revision: int = 0
    """0: of the app's newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    conditions: Sequence[AppCondition]
    """The overall one last, because clients read the last one; empty while nothing is known."""

    sha: str = ""
    """Of the spec that was deployed last, empty if nothing is there."""

    replicas: int = 0
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Replicas:
    """Whose lines follow; comes first, and again when replicas join."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplicaLines:
    replica: str
    lines: Sequence[LogLine]


class AppBackend(Protocol):
    async def check(self, app: AppDefinition) -> None:
        """Before anything is written. Raises `InvalidArgument` naming the field for what this backend cannot run,
        `AlreadyExists` if another app has the same host label, `FailedPrecondition` if there is nowhere to run it."""
        ...

    def public_url(self, app: AppDefinition) -> str:
        """Where users reach it, running or not; empty for a private app or where no domain is configured."""
        ...

    async def deploy(self, app: AppDefinition) -> None:
        """Running, with this spec. Writes nothing if that is so. Raises `Unavailable` if it may be tried again,
        `InvalidArgument` if it is refused."""
        ...

    async def stop(self, app: AppDefinition) -> None:
        """No replica, no route, and the definition kept. Absent is success."""
        ...

    async def delete(self, app: AppId) -> None:
        """Absent is success."""
        ...

    async def observe(self, app: AppDefinition) -> AppState: ...

    async def existing(self) -> Sequence[AppId]:
        """Every app of ours that is there, with or without a row."""
        ...

    def changed(self) -> AsyncIterator[AppId]:
        """Everything that exists first, then each change; may repeat, must not miss the last."""
        ...


class AppLogs(Protocol):
    def follow(self, app: AppId, replica: str | None) -> AsyncIterator[Replicas | ReplicaLines]:
        """The last 1,000 lines of each replica, then what they print, in order for each. Replicas that appear later
        join. Raises `NotFound` if the app has no replica, or none of that name; ends when all have ended."""
        ...
