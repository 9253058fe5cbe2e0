"""What apps on this machine are told at the start; the configuration layer fills it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAppSettings:
    public_url: str
    """Of this server, without a slash at the end; apps are below `<public_url>/apps/`."""

    internal_url: str
    """The same for processes of this machine."""

    raw_data_prefix: str
    """Where an app may put data, without a slash at the end; project, domain and app follow."""

    node: str = ""
    """Name of this machine among several."""

    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables for every app; its own ones win."""

    scaledown_period: timedelta = timedelta(minutes=5)
    """Without requests for so long a replica that is not needed ends, where the app says nothing else."""

    start_timeout: timedelta = timedelta(minutes=5)
    """A replica that does not listen after so long has failed."""

    request_timeout: timedelta = timedelta(minutes=5)
    """For the first byte of an answer, where the app says nothing else."""

    stop_grace: timedelta = timedelta(seconds=10)
    """Between asking a replica to end and killing it."""

    max_replicas: int = 8
    """Of one app, where it sets no limit."""

    max_waiting: int = 1000
    """Requests of one app that wait for a replica; more are turned away."""

    log_limit_bytes: int = 100 * 1024 * 1024
    """Of each replica."""

    kept_logs: int = 2
    """Ended replicas of an app whose logs can still be read."""
