"""An app on this machine as the conditions that clients see. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from flyte_binary.app.backend import AppCondition, DeploymentStatus, Substate


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why the newest revision does not run; until a replica of it listens."""

    message: str
    since: datetime
    revision: int
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    revision: int
    """The one that is wanted."""

    stopped: bool = False
    proven: bool = False
    """A replica of the wanted revision has listened."""

    ready: int = 0
    """Replicas of the wanted revision that listen."""

    starting: int = 0
    ending: int = 0
    serving_revision: int | None = None
    """An older revision that serves in its place."""

    failure: Failure | None = None
    remark: str = ""
    """Something users should know about a running app."""


@dataclass(frozen=True, slots=True)
class _Word:
    status: DeploymentStatus
    substate: Substate
    message: str
    revision: int = 0


_S = DeploymentStatus


def conditions_of(facts: Facts, before: tuple[AppCondition, ...], now: datetime) -> tuple[AppCondition, ...]:
    """The overall one last. What has not changed since `before` keeps its time."""
    known = {(c.status, c.substate, c.message, c.revision): c.since for c in before}
    return tuple(
        AppCondition(
            status=word.status,
            substate=word.substate,
            message=word.message,
            revision=word.revision,
            since=known.get((word.status, word.substate, word.message, word.revision), now),
        )
        for word in _words(facts)
    )


def _words(facts: Facts) -> list[_Word]:
    overall = _overall(facts)
    if facts.serving_revision is None or facts.stopped:
        return [overall]
    message = f"revision {facts.serving_revision} serves until revision {facts.revision} is ready"
    older = _Word(_S.DEPLOYMENT_STATUS_ACTIVE, Substate.RUNNING, message, facts.serving_revision)
    return [older, overall]


def _overall(facts: Facts) -> _Word:
    revision = facts.revision
    if facts.stopped:
        if facts.ending:
            return _Word(_S.DEPLOYMENT_STATUS_SCALING_DOWN, Substate.SCALING_DOWN, "replicas are ending", revision)
        return _Word(_S.DEPLOYMENT_STATUS_STOPPED, Substate.SUBSTATE_UNSPECIFIED, "the app is stopped", revision)
    if facts.ready:
        replicas = "1 replica is ready" if facts.ready == 1 else f"{facts.ready} replicas are ready"
        message = f"{replicas}; {facts.remark}" if facts.remark else replicas
        return _Word(_S.DEPLOYMENT_STATUS_ACTIVE, Substate.RUNNING, message, revision)
    if facts.failure is not None:
        substate = Substate.OOM_KILLED if facts.failure.out_of_memory else Substate.CRASH_LOOP
        return _Word(_S.DEPLOYMENT_STATUS_FAILED, substate, facts.failure.message, revision)
    if not facts.proven:
        return _Word(_S.DEPLOYMENT_STATUS_DEPLOYING, Substate.INITIALIZING, "the first replica starts", revision)
    if facts.starting:
        return _Word(_S.DEPLOYMENT_STATUS_ACTIVE, Substate.SCALING_FROM_ZERO, "a replica starts", revision)
    message = "scaled to zero; the next request starts a replica"
    return _Word(_S.DEPLOYMENT_STATUS_ACTIVE, Substate.SCALED_TO_ZERO, message, revision)
