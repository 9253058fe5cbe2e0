"""Where attempts run: the seam between the reconciler and processes (or, later, pods).

The reconciler is level-triggered: it may ask for the same launch twice, observe late, or be
restarted between any two calls. So `launch` of an attempt that exists is no second launch,
`stop` of an absent one is success, and absent is a state and not an error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Protocol

from flyte_binary.domain.ids import AttemptId
from flyte_binary.domain.logs import LogLine as LogLine  # re-exported: what a LogSource yields
from flyte_binary.domain.logs import LogPage as LogPage
from flyte_binary.executor.secrets import SecretRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSpec:
    """All that a backend needs to run one attempt; made by `executor/task_types.py`."""

    id: AttemptId
    nonce: str
    """Of this launch; a folder or pod with another nonce is not this attempt."""
    argv: tuple[str, ...]
    """The rendered command and arguments; `argv[0]` is `a0` for an SDK task."""
    env: Mapping[str, str]
    """Task level variables (template, run, reserved ones); the backend adds its own base beneath."""
    image: str
    secrets: tuple[SecretRequest, ...] = ()
    """What the backend gives the attempt when it launches it; no value of a secret is ever here."""
    bundle_uri: str = ""
    """The code bundle (`--tgz` or `--pkl`) among the arguments, or empty."""
    cores: float = 1.0
    memory_limit_bytes: int | None = None
    """Resident memory of the whole process group above which the attempt is killed as out of memory."""
    log_limit_bytes: int = 100 * 1024 * 1024
    notices: tuple[str, ...] = ()
    """Sentences for the head of the attempt's log: what was asked for and has no effect here."""


class AttemptPhase(Enum):
    ABSENT = "absent"
    """Never launched, launched with another nonce, or gone without a trace (a killed shim)."""
    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptState:
    phase: AttemptPhase
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    """Negative is minus the signal number."""
    out_of_memory: bool = False
    reason: str = ""
    """A sentence for the user where the backend knows more than the exit code (no such interpreter,
    the bundle is not a tar, killed by the memory watchdog)."""
    invalid: bool = False
    """The attempt can never start as specified (bad bundle, missing interpreter): do not retry."""
    cpu_seconds: float | None = None
    """Of the live process group, where the platform tells."""


class ExecutionBackend(Protocol):
    async def launch(self, attempt: AttemptSpec) -> None:
        """Same attempt and nonce twice is one launch. Raises `Unavailable` if it may be tried again."""
        ...

    async def observe(self, attempt: AttemptId, nonce: str, *, with_cpu: bool = False) -> AttemptState:
        """`with_cpu` adds up the processor time of the whole process tree, which is not for every pass."""
        ...

    async def stop(self, attempt: AttemptId, *, grace_seconds: float) -> None:
        """Ask the whole process group to end, kill it after the grace; returns at once."""
        ...

    async def forget(self, attempt: AttemptId) -> None:
        """Remove what is left of an ended attempt (folder, pod). Absent is success."""
        ...

    def changed(self) -> AsyncIterator[AttemptId]:
        """Everything that exists first, then each change; may repeat, must not miss an end."""
        ...


class LogSource(Protocol):
    """Output of attempts: a live process, a live pod, or an archived object."""

    async def tail_position(self, attempt: AttemptId, *, lines: int) -> int | None:
        """The position from which the last `lines` lines follow; None if there is no such log."""
        ...

    async def read(self, attempt: AttemptId, position: int, *, limit_lines: int) -> LogPage: ...

    async def wait(self, attempt: AttemptId, position: int, *, timeout_seconds: float) -> None:
        """Return when something may follow `position`, or after the timeout."""
        ...
