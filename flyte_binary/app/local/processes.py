"""What runs the processes: the seam to the part of the server that runs tasks, which does the same for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from flyteidl2.core import security_pb2

from flyte_binary.domain.ids import AppId
from flyte_binary.domain.logs import LogPage


class ReplicaId(NamedTuple):
    app: AppId
    number: int
    """Counted from 1; every process of the app has another one."""

    @property
    def name(self) -> str:
        """As clients see it."""
        return f"{self.app.name}-{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSpec:
    id: ReplicaId
    nonce: str
    """Of the launch; a process with another one is not this replica."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    image: str
    secrets: tuple[security_pb2.Secret, ...] = ()
    bundle_uri: str = ""
    memory_limit_bytes: int | None = None
    log_limit_bytes: int
    notices: tuple[str, ...] = ()
    """Sentences for the head of the log: what was asked for and has no effect here."""


class ProcessPhase(Enum):
    ABSENT = "absent"
    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    phase: ProcessPhase
    exit_code: int | None = None
    """Negative is minus the signal number."""

    out_of_memory: bool = False
    reason: str = ""
    """A sentence where more is known than the exit code."""


class Processes(Protocol):
    async def launch(self, replica: ReplicaSpec) -> None:
        """Same replica and nonce twice is one launch. Raises `Unavailable` if it may be tried again."""
        ...

    async def observe(self, replica: ReplicaId, nonce: str) -> ProcessState: ...

    async def listens(self, replica: ReplicaId) -> frozenset[int]:
        """The TCP ports on which the process or one of its descendants listens on loopback or everywhere."""
        ...

    async def stop(self, replica: ReplicaId, *, grace_seconds: float) -> None:
        """Returns at once. Absent is success."""
        ...

    async def forget(self, replica: ReplicaId) -> None:
        """Remove what is left of an ended one, its log included. Absent is success."""
        ...

    def changed(self) -> AsyncIterator[ReplicaId]:
        """Everything that exists first, then each change; may repeat, must not miss an end."""
        ...

    # Its output.

    async def tail_position(self, replica: ReplicaId, *, lines: int) -> int | None:
        """The position from which the last `lines` lines follow; None if there is no such log."""
        ...

    async def read(self, replica: ReplicaId, position: int, *, limit_lines: int) -> LogPage:
        """Raises `NotFound` if it is gone."""
        ...

    async def wait(self, replica: ReplicaId, position: int, *, timeout_seconds: float) -> None:
        """Return when something may follow `position`, or after the timeout."""
        ...
