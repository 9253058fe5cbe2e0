"""Settings of apps: the section `internalApps`, named as in the reference backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from flyte_binary.config.bounds import Between


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalApps:
    scaledown_period: Annotated[timedelta, Between(6, 86_400)] = timedelta(minutes=5)
    """Without requests for so long a replica that is not needed ends, where the app itself says nothing else. YAML:
    internalApps.local.scaledownPeriod."""

    start_timeout: Annotated[timedelta, Between(1)] = timedelta(minutes=5)
    """A replica that does not listen after so long has failed; requests wait for it no longer. YAML:
    internalApps.local.startTimeout."""

    stop_grace: Annotated[timedelta, Between(0, 600)] = timedelta(seconds=10)
    """Between asking a replica to end (SIGTERM) and killing it. YAML: internalApps.local.stopGrace."""

    max_replicas: Annotated[int, Between(1, 1000)] = 8
    """Replicas of one app, where it sets no limit itself. YAML: internalApps.local.maxReplicas."""

    max_waiting: Annotated[int, Between(1, 100_000)] = 1000
    """Requests of one app that wait for a replica; more are turned away. YAML: internalApps.local.maxWaiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalApps:
    default_request_timeout: Annotated[timedelta, Between(1)] = timedelta(minutes=5)
    """How long an app may take for the first byte of an answer, where it says nothing itself. YAML:
    internalApps.defaultRequestTimeout."""

    max_request_timeout: Annotated[timedelta, Between(1)] = timedelta(hours=1)
    """The most that an app may ask for. YAML: internalApps.maxRequestTimeout."""

    default_env_vars: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables of every app; its own ones win. YAML: internalApps.defaultEnvVars."""

    local: LocalApps = field(default_factory=LocalApps)
