"""Attempts as details show them."""

from __future__ import annotations

import pytest
from flyteidl2.core import execution_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.domain.phases import ACTIVE, TERMINAL, Phase
from flyte_binary.runs.view.attempts import attempts_of
from tests.unit.runs.rows import CONDITION, SECOND, START, TRACE, event, row


def shape(attempts: list[run_definition_pb2.ActionAttempt]) -> list[tuple[int, str]]:
    return [(attempt.attempt, Phase(attempt.phase).name) for attempt in attempts]


def transitions(attempt: run_definition_pb2.ActionAttempt) -> list[tuple[str, float, float | None]]:
    """Phase, start and end in seconds after the start."""

    def seconds(stamp: object) -> float:
        return (stamp.ToMicroseconds() - START) / SECOND  # type: ignore[attr-defined]  # a Timestamp

    return [
        (
            Phase(item.phase).name,
            seconds(item.start_time),
            seconds(item.end_time) if item.HasField("end_time") else None,
        )
        for item in attempt.phase_transitions
    ]


def test_the_phases_of_an_attempt_follow_one_another_without_gaps() -> None:
    events = [
        event(Phase.QUEUED),
        event(Phase.INITIALIZING, seconds=1),
        event(Phase.RUNNING, seconds=2, has_logs=True),
        event(Phase.SUCCEEDED, seconds=5, prefix="/store/r1/a0/1", has_report=True),
    ]
    (attempt,) = attempts_of(row(phase=Phase.SUCCEEDED, ended_at=START + 5 * SECOND), events)

    assert transitions(attempt) == [
        ("QUEUED", 0, 1),
        ("INITIALIZING", 1, 2),
        ("RUNNING", 2, 5),
        ("SUCCEEDED", 5, 5),
    ]
    assert attempt.start_time.ToMicroseconds() == START
    assert attempt.end_time.ToMicroseconds() == START + 5 * SECOND
    assert attempt.outputs.output_uri == "/store/r1/a0/1/outputs.pb"
    assert attempt.outputs.report_uri == "/store/r1/a0/1/report.html"
    assert attempt.logs_available
    assert attempt.log_context.primary_pod_name == "r1-a0-0"


def test_every_failed_attempt_shows_its_own_error_and_end() -> None:
    events = [
        event(Phase.RUNNING, seconds=1),
        event(Phase.FAILED, seconds=2, error="first"),
        event(Phase.RUNNING, seconds=3, attempt=2),
        event(Phase.FAILED, seconds=4, attempt=2, error="second"),
    ]
    attempts = attempts_of(row(phase=Phase.FAILED, attempts=2, ended_at=START + 4 * SECOND), events)

    assert shape(attempts) == [(1, "FAILED"), (2, "FAILED")]
    assert [attempt.error_info.message for attempt in attempts] == ["first", "second"]
    assert all(attempt.HasField("end_time") for attempt in attempts)


@pytest.mark.parametrize("phase", sorted(ACTIVE))
def test_an_action_without_events_shows_one_attempt_in_its_phase(phase: Phase) -> None:
    (attempt,) = attempts_of(row(phase=phase), [])

    assert attempt.phase == phase
    assert attempt.attempt == 1
    assert not attempt.HasField("end_time")
    assert not attempt.logs_available


@pytest.mark.parametrize("phase", sorted(TERMINAL))
def test_an_action_that_ended_before_it_began_shows_one_ended_attempt(phase: Phase) -> None:
    (attempt,) = attempts_of(row(phase=phase, ended_at=START + SECOND), [])

    assert attempt.phase == phase
    assert transitions(attempt) == [("QUEUED", 0, 1), (phase.name, 1, 1)]


def test_the_attempt_of_an_aborted_action_has_ended_before_its_process_is_gone() -> None:
    events = [event(Phase.RUNNING, seconds=1, has_logs=True)]
    (attempt,) = attempts_of(row(phase=Phase.ABORTED, ended_at=START + 3 * SECOND), events)

    assert attempt.phase == Phase.ABORTED
    assert transitions(attempt) == [("RUNNING", 1, 3), ("ABORTED", 3, 3)]
    assert attempt.logs_available


def test_a_retry_that_waits_is_an_attempt_of_its_own() -> None:
    events = [event(Phase.RUNNING), event(Phase.FAILED, seconds=1, error="no")]
    attempts = attempts_of(row(phase=Phase.QUEUED, attempts=2, queued_at=START + SECOND), events)

    assert shape(attempts) == [(1, "FAILED"), (2, "QUEUED")]
    assert attempts[1].start_time.ToMicroseconds() == START + SECOND


def test_no_attempt_runs_on_when_the_action_is_at_a_later_one() -> None:
    """The reference backend leaves them RUNNING for ever; here each attempt reports its own end."""
    attempts = attempts_of(row(phase=Phase.RUNNING, attempts=2), [event(Phase.FAILED), event(Phase.RUNNING, attempt=2)])
    assert shape(attempts) == [(1, "FAILED"), (2, "RUNNING")]


@pytest.mark.parametrize("action_type", [TRACE, CONDITION])
def test_traces_and_conditions_have_no_attempts(action_type: int) -> None:
    assert attempts_of(row(action_type=action_type), []) == []


def test_a_corrected_end_replaces_the_first_report() -> None:
    events = [
        event(Phase.RUNNING),
        event(Phase.SUCCEEDED, seconds=1),
        event(Phase.FAILED, seconds=2, error="the outputs are missing"),
    ]
    (attempt,) = attempts_of(row(phase=Phase.FAILED, ended_at=START + 2 * SECOND), events)

    assert attempt.phase == Phase.FAILED
    assert [name for name, _, _ in transitions(attempt)] == ["RUNNING", "FAILED"]


def test_the_newest_log_context_and_the_last_link_of_each_name_count() -> None:
    first, second = event(Phase.RUNNING, has_logs=True), event(Phase.SUCCEEDED, seconds=1)
    first.log_info.add(name="b", uri="old")
    first.log_info.add(name="a", uri="a")
    second.log_info.add(name="b", uri="new")
    (attempt,) = attempts_of(row(phase=Phase.SUCCEEDED, ended_at=START), [first, second])

    assert [(log.name, log.uri) for log in attempt.log_info] == [("a", "a"), ("b", "new")]
    assert attempt.logs_available
    assert isinstance(attempt.log_context, execution_pb2.LogContext)
    assert attempt.log_context.primary_pod_name


def test_events_count_in_the_order_in_which_they_were_reported() -> None:
    late = event(Phase.QUEUED, seconds=0, version=3, message="second")
    late.reported_time.FromMicroseconds(START + 2 * SECOND)
    events = [late, event(Phase.RUNNING, seconds=1, message="first")]
    (attempt,) = attempts_of(row(phase=Phase.QUEUED), events)

    assert attempt.phase == Phase.QUEUED
    assert [item.message for item in attempt.cluster_events] == ["first", "second"]


def test_an_attempt_number_of_0_is_the_first() -> None:
    assert shape(attempts_of(row(phase=Phase.RUNNING), [event(Phase.RUNNING, attempt=0)])) == [(1, "RUNNING")]
