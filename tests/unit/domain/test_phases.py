"""The one table of moves."""

from __future__ import annotations

from flyteidl2.common import phase_pb2
from hypothesis import given
from hypothesis import strategies as st

from flyte_binary.db.tables import UNFINISHED_SQL
from flyte_binary.domain.phases import ACTIVE, MOVES, SUCCESSFUL, TERMINAL, Phase, can_move, is_terminal, sources_of

phases = st.sampled_from(Phase)


@given(phases, st.lists(phases, max_size=30))
def test_terminal_is_final_whatever_is_reported(start: Phase, reports: list[Phase]) -> None:
    current = start
    ended: Phase | None = start if is_terminal(start) else None
    for report in reports:
        if can_move(current, report):
            current = report
        if ended is None and is_terminal(current):
            ended = current
    assert ended is None or current == ended


@given(phases, phases)
def test_what_the_table_allows_is_what_sql_guards_list(source: Phase, target: Phase) -> None:
    assert can_move(source, target) == (source in sources_of(target))


@given(phases)
def test_no_phase_is_entered_from_itself(phase: Phase) -> None:
    assert not can_move(phase, phase)


def test_every_unfinished_action_can_be_ended_in_every_way() -> None:
    assert all(can_move(source, end) for source in ACTIVE for end in TERMINAL)


def test_every_phase_is_either_active_or_terminal_but_for_the_one_that_says_nothing() -> None:
    assert set(Phase) - {Phase.UNSPECIFIED} == ACTIVE | TERMINAL
    assert not ACTIVE & TERMINAL
    assert SUCCESSFUL < TERMINAL
    assert set(MOVES) == ACTIVE | TERMINAL
    assert not is_terminal(Phase.UNSPECIFIED)


def test_the_numbers_are_those_of_the_wire() -> None:
    assert {f"ACTION_PHASE_{phase.name}": int(phase) for phase in Phase} == dict(phase_pb2.ActionPhase.items())


def test_the_indexes_of_the_database_cover_the_same_phases() -> None:
    listed = {int(number) for number in UNFINISHED_SQL.partition("(")[2].rstrip(")").split(",")}

    assert listed == {int(phase) for phase in ACTIVE}


def test_a_late_report_takes_nothing_backwards_but_for_the_next_attempt() -> None:
    assert not can_move(Phase.RUNNING, Phase.INITIALIZING)
    assert not can_move(Phase.INITIALIZING, Phase.WAITING_FOR_RESOURCES)
    assert can_move(Phase.RUNNING, Phase.QUEUED)
