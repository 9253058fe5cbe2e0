"""What the ingress asks of whoever runs apps, and what it is told when there is no replica to be had."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from flyte_binary.domain.errors import DeadlineExceeded, NotFound, ResourceExhausted, Unavailable
from flyte_binary.domain.ids import AppId


class Upstream(NamedTuple):
    host: str
    port: int
    request_timeout: float
    """Seconds to the first byte of an answer."""


class Activator(Protocol):
    def resolve(self, label: str) -> AppId | None:
        """Whose host label this is."""
        ...

    def lease(self, app: AppId) -> AbstractAsyncContextManager[Upstream]:
        """A replica for one request, started and waited for if there is none. Raises the errors below."""
        ...


class NoSuchApp(NotFound):
    def __init__(self, app: AppId) -> None:
        super().__init__(f"app {app} not found")


class AppStopped(Unavailable):
    def __init__(self, app: AppId) -> None:
        super().__init__(f"app {app} is stopped; start it with: flyte update app {app.name} --activate")


class AppBusy(ResourceExhausted):
    def __init__(self, app: AppId) -> None:
        super().__init__(f"too many requests wait for a replica of app {app}; try again in a moment")


class AppFailed(Unavailable):
    """Its replicas do not start, or end at once."""

    def __init__(self, app: AppId, reason: str, *, retry_after: float) -> None:
        super().__init__(f"app {app} does not run: {reason}")
        self.retry_after = retry_after
        """Seconds until a replica is started again."""


class StartTimeout(DeadlineExceeded):
    def __init__(self, app: AppId) -> None:
        super().__init__(f"no replica of app {app} was ready in time")
