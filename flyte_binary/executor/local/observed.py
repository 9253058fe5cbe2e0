"""From what stands in an attempt's folder to what the reconciler is told. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from flyte_binary.executor.backend import AttemptPhase, AttemptState
from flyte_binary.executor.local.folders import Found

ABSENT = AttemptState(phase=AttemptPhase.ABSENT)


def state_from(found: Found | None, nonce: str, *, cpu_seconds: float | None = None) -> AttemptState:
    """A lost attempt is ABSENT with `started_at` set: it ran once, so launching it again does nothing."""
    if found is None or found.nonce != nonce:
        return ABSENT
    if found.exit is not None:
        return AttemptState(
            phase=AttemptPhase.EXITED,
            started_at=_time(found.exit.get("started_at")),
            ended_at=_time(found.exit.get("ended_at")),
            exit_code=found.exit["exit_code"],
            out_of_memory=found.exit["out_of_memory"],
            reason=found.exit["reason"],
            invalid=bool(found.exit.get("invalid")),
        )
    started_at = _time(found.started["at"]) if found.started is not None else None
    if found.lost:
        return AttemptState(
            phase=AttemptPhase.ABSENT,
            started_at=started_at,
            reason="The process that watched over the attempt was killed, and the attempt with it.",
        )
    if not found.held:
        return ABSENT
    if found.started is None:
        return AttemptState(phase=AttemptPhase.STARTING)
    return AttemptState(phase=AttemptPhase.RUNNING, started_at=started_at, cpu_seconds=cpu_seconds)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
