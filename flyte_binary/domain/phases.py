"""Phases of an action and the one table of the moves between them.

The SQL guards are made from the same table (`sources_of`), so what Python allows and what the
database allows cannot differ. Terminal is final; a retry is a new attempt of an action that is not
terminal. The single way out of a terminal phase, the re-opening of a superseded child when its
parent starts a new attempt, is a verb of its own in the database layer and not in this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Phase(IntEnum):
    """Numbers are those of `flyteidl2.common.ActionPhase`."""

    UNSPECIFIED = 0
    QUEUED = 1
    WAITING_FOR_RESOURCES = 2
    INITIALIZING = 3
    RUNNING = 4
    SUCCEEDED = 5
    FAILED = 6
    ABORTED = 7
    TIMED_OUT = 8
    PAUSED = 9
    RECOVERED = 10


TERMINAL = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.ABORTED, Phase.TIMED_OUT, Phase.RECOVERED})
SUCCESSFUL = frozenset({Phase.SUCCEEDED, Phase.RECOVERED})
ACTIVE = frozenset(set(Phase) - TERMINAL - {Phase.UNSPECIFIED})

_ENDS = (Phase.SUCCEEDED, Phase.FAILED, Phase.ABORTED, Phase.TIMED_OUT, Phase.RECOVERED)

MOVES: Mapping[Phase, frozenset[Phase]] = {
    Phase.QUEUED: frozenset({Phase.WAITING_FOR_RESOURCES, Phase.INITIALIZING, Phase.RUNNING, Phase.PAUSED, *_ENDS}),
    Phase.WAITING_FOR_RESOURCES: frozenset({Phase.QUEUED, Phase.INITIALIZING, Phase.RUNNING, Phase.PAUSED, *_ENDS}),
    # Back to QUEUED is the start of the next attempt.
    Phase.INITIALIZING: frozenset({Phase.QUEUED, Phase.RUNNING, Phase.PAUSED, *_ENDS}),
    Phase.RUNNING: frozenset({Phase.QUEUED, Phase.PAUSED, *_ENDS}),
    Phase.PAUSED: frozenset({Phase.QUEUED, Phase.RUNNING, *_ENDS}),
    **{end: frozenset() for end in _ENDS},
}


def is_terminal(phase: int) -> bool:
    return phase in TERMINAL


def can_move(source: Phase, target: Phase) -> bool:
    return target in MOVES.get(source, frozenset())


def sources_of(target: Phase) -> tuple[Phase, ...]:
    """The phases from which `target` may be entered: what the `WHERE` of a guarded update lists."""
    return tuple(source for source, targets in MOVES.items() if target in targets)
