"""What a reported status does to an action."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.actions.status_reports import route
from flyte_binary.domain.phases import ACTIVE, TERMINAL, Phase, can_move

QUEUED, WAITING, INITIALIZING, RUNNING = (
    Phase.QUEUED,
    Phase.WAITING_FOR_RESOURCES,
    Phase.INITIALIZING,
    Phase.RUNNING,
)
SUCCEEDED, FAILED, ABORTED, PAUSED = Phase.SUCCEEDED, Phase.FAILED, Phase.ABORTED, Phase.PAUSED


@pytest.mark.parametrize(
    ("current", "attempt", "reported", "reported_attempt", "expected"),
    [
        (QUEUED, 1, RUNNING, 1, (RUNNING,)),
        (QUEUED, 1, RUNNING, 0, (RUNNING,)),
        (QUEUED, 1, SUCCEEDED, 1, (SUCCEEDED,)),
        (RUNNING, 1, RUNNING, 1, ()),
        (RUNNING, 1, RUNNING, 2, ()),
        # Late ones.
        (RUNNING, 1, QUEUED, 1, None),
        (WAITING, 1, QUEUED, 0, None),
        (RUNNING, 2, FAILED, 1, None),
        (SUCCEEDED, 1, RUNNING, 1, None),
        (FAILED, 1, RUNNING, 2, None),
        (ABORTED, 1, SUCCEEDED, 1, None),
        (RUNNING, 1, Phase.UNSPECIFIED, 1, None),
        # The next attempt, also where its first reports went missing.
        (RUNNING, 1, QUEUED, 2, (QUEUED,)),
        (RUNNING, 1, INITIALIZING, 2, (QUEUED, INITIALIZING)),
        (INITIALIZING, 1, WAITING, 2, (QUEUED, WAITING)),
        (RUNNING, 1, SUCCEEDED, 2, (SUCCEEDED,)),
        # A pause.
        (RUNNING, 1, PAUSED, 1, (PAUSED,)),
        (PAUSED, 1, RUNNING, 1, (RUNNING,)),
        (PAUSED, 1, QUEUED, 1, None),
        (PAUSED, 1, SUCCEEDED, 0, (SUCCEEDED,)),
    ],
)
def test_a_report_leads_to_these_moves(
    current: Phase, attempt: int, reported: Phase, reported_attempt: int, expected: tuple[Phase, ...] | None
) -> None:
    assert route(current, attempt, reported, reported_attempt) == expected


@given(st.sampled_from(Phase), st.sampled_from(Phase), st.integers(1, 3), st.integers(0, 3))
def test_every_route_follows_the_phase_table_and_ends_where_the_report_says(
    current: Phase, reported: Phase, attempt: int, reported_attempt: int
) -> None:
    steps = route(current, attempt, reported, reported_attempt)
    if not steps:
        return
    for source, target in zip((current, *steps), steps, strict=False):
        assert can_move(source, target)
    assert steps[-1] == reported


@given(st.sampled_from(sorted(TERMINAL)), st.sampled_from(Phase), st.integers(0, 9))
def test_nothing_leads_out_of_a_terminal_phase(current: Phase, reported: Phase, attempt: int) -> None:
    assert route(current, 1, reported, attempt) is None


@given(st.sampled_from(sorted(ACTIVE)), st.sampled_from(sorted(TERMINAL)), st.integers(1, 3))
def test_every_end_of_the_current_attempt_is_taken(current: Phase, end: Phase, attempt: int) -> None:
    assert route(current, attempt, end, attempt) == (end,)
