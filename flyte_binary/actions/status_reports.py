"""What a reported status does to an action: a pure decision over the phase table.

Executors outside this server report at least once, late, and with phases left out. A report never takes an action
backwards within an attempt nor out of a terminal phase, and a zero in it says nothing.
"""

from __future__ import annotations

from flyte_binary.domain.phases import Phase, can_move, is_terminal


def route(current: Phase, current_attempt: int, reported: Phase, reported_attempt: int) -> tuple[Phase, ...] | None:
    """The moves that lead to the reported phase, none if only columns change; None for a late report.

    A higher attempt starts over at QUEUED, also if that report went missing.
    """
    if is_terminal(current) or reported == Phase.UNSPECIFIED:
        return None
    if 0 < reported_attempt < current_attempt:
        return None
    if reported == current:
        return ()
    next_attempt = reported_attempt > current_attempt
    if can_move(current, reported) and (next_attempt or not _backwards(current, reported)):
        return (reported,)
    if next_attempt and can_move(current, Phase.QUEUED) and can_move(Phase.QUEUED, reported):
        return (Phase.QUEUED, reported)
    return None


def _backwards(current: Phase, reported: Phase) -> bool:
    """Whether only the start of another attempt leads there; a pause ends with the action running on."""
    if current == Phase.PAUSED:
        return reported != Phase.RUNNING and not is_terminal(reported)
    return reported < current
