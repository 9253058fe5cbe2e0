"""The exit contract of the SDK's runtime, row by row, and the budgets of failures."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flyteidl2.core import execution_pb2

from flyte_binary.domain.task_limits import Backoff, Limits
from flyte_binary.executor.backend import AttemptPhase, AttemptState
from flyte_binary.executor.verdict import (
    Budget,
    Failures,
    Outcome,
    Timeout,
    Verdict,
    after_timeout,
    judge,
)

Kind = execution_pb2.ContainerError
Origin = execution_pb2.ExecutionError


def exited(code: int | None = 0, **more: object) -> AttemptState:
    return AttemptState(phase=AttemptPhase.EXITED, exit_code=code, **more)  # type: ignore[arg-type]  # test input


def document(kind: Kind.Kind, origin: Origin.ErrorKind) -> execution_pb2.ContainerError:
    return execution_pb2.ContainerError(code="ValueError", message="no", kind=kind, origin=origin)


def budget(retries: int = 0, failures: Failures | None = None, backoff: Backoff | None = None) -> Budget:
    return Budget(
        failures=failures or Failures(),
        limits=Limits(retries=retries, backoff=backoff or Backoff()),
        max_retries=100,
        max_system_failures=3,
        max_infrastructure_failures=2,
    )


def verdict(
    state: AttemptState,
    error: execution_pb2.ContainerError | None = None,
    *,
    outputs: bool = False,
    tail: str = "",
    given: Budget | None = None,
) -> Verdict:
    return judge(state, error, has_outputs=outputs, log_tail=tail, budget=given or budget())


def test_exit_zero_with_outputs_is_success() -> None:
    assert verdict(exited(0), outputs=True).outcome is Outcome.SUCCEED


def test_the_error_file_counts_before_the_outputs() -> None:
    assert verdict(exited(0), document(Kind.RECOVERABLE, Origin.USER), outputs=True).outcome is Outcome.FAIL


@pytest.mark.parametrize("code", [1, 3, 137, -9, -11, None])
def test_outputs_do_not_make_a_success_of_a_bad_exit(code: int | None) -> None:
    assert verdict(exited(code), outputs=True).outcome is Outcome.FAIL


def test_exit_zero_with_neither_file_fails_with_the_tail_of_the_log() -> None:
    found = verdict(exited(0), tail="last words")
    assert found.outcome is Outcome.FAIL
    assert found.error is not None
    assert found.error.message.endswith("The end of its log:\nlast words")
    assert found.error.kind == Origin.USER


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        (exited(3), "ExitCode", "exit code 3"),
        (exited(-9), "Killed", "signal 9 (SIGKILL)"),
        (exited(-200), "Killed", "signal 200"),
        (exited(-9, out_of_memory=True, reason="4 GiB over the limit"), "OOMKilled", "4 GiB over the limit"),
        (exited(None, invalid=True, reason="the bundle is no tar"), "BadTaskSpecification", "the bundle is no tar"),
    ],
)
def test_every_end_has_a_code_and_says_what_happened(state: AttemptState, code: str, words: str) -> None:
    found = verdict(state)
    assert found.error is not None
    assert (found.error.code, words in found.error.message) == (code, True)


def test_a_recoverable_error_is_tried_again_while_retries_remain() -> None:
    error = document(Kind.RECOVERABLE, Origin.USER)
    found = [verdict(exited(0), error, given=budget(2, Failures(user=used))) for used in (0, 1, 2)]
    assert [each.outcome for each in found] == [Outcome.RETRY, Outcome.RETRY, Outcome.FAIL]
    assert [each.failures.user for each in found] == [1, 2, 3]


def test_a_non_recoverable_error_is_final() -> None:
    assert verdict(exited(0), document(Kind.NON_RECOVERABLE, Origin.USER), given=budget(5)).outcome is Outcome.FAIL


def test_what_can_never_start_is_not_tried_again() -> None:
    assert verdict(exited(None, invalid=True, reason="no"), given=budget(5)).outcome is Outcome.FAIL


def test_a_failed_load_counts_as_the_users_failure() -> None:
    found = verdict(exited(1), document(Kind.RECOVERABLE, Origin.UNKNOWN), given=budget(1))
    assert (found.outcome, found.failures) == (Outcome.RETRY, Failures(user=1))


def test_a_system_error_restarts_without_using_up_retries_until_its_own_cap() -> None:
    error = document(Kind.RECOVERABLE, Origin.SYSTEM)
    found = [verdict(exited(0), error, given=budget(0, Failures(system=used))) for used in range(4)]
    assert [each.outcome for each in found] == [Outcome.RETRY] * 3 + [Outcome.FAIL]
    assert all(each.failures.user == 0 for each in found)


def test_a_lost_attempt_restarts_until_the_cap_of_its_own() -> None:
    lost = AttemptState(phase=AttemptPhase.ABSENT)
    found = [verdict(lost, given=budget(0, Failures(infrastructure=used))) for used in range(3)]
    assert [each.outcome for each in found] == [Outcome.RETRY, Outcome.RETRY, Outcome.FAIL]
    assert found[-1].error is not None
    assert found[-1].error.kind == Origin.SYSTEM


def test_retries_are_capped_by_the_server() -> None:
    given = Budget(
        failures=Failures(user=1),
        limits=Limits(retries=1000),
        max_retries=1,
        max_system_failures=3,
        max_infrastructure_failures=3,
    )
    assert verdict(exited(1), given=given).outcome is Outcome.FAIL


def test_the_pause_before_a_retry_is_the_tasks_back_off() -> None:
    backoff = Backoff(base=timedelta(seconds=2), factor=3, cap=timedelta(seconds=10))
    found = [verdict(exited(1), given=budget(9, Failures(user=used), backoff)).delay for used in range(3)]
    assert found == [timedelta(seconds=seconds) for seconds in (2, 6, 10)]


@pytest.mark.parametrize(
    ("timeout", "retries", "outcome"),
    [
        (Timeout.MAX_RUNTIME, 0, Outcome.TIME_OUT),
        (Timeout.MAX_RUNTIME, 1, Outcome.RETRY),
        (Timeout.QUEUED, 0, Outcome.TIME_OUT),
        (Timeout.QUEUED, 1, Outcome.RETRY),
        (Timeout.DEADLINE, 0, Outcome.TIME_OUT),
        (Timeout.DEADLINE, 9, Outcome.TIME_OUT),
    ],
)
def test_the_deadline_is_final_and_the_limits_of_an_attempt_use_up_a_retry(
    timeout: Timeout, retries: int, outcome: Outcome
) -> None:
    found = after_timeout(timeout, timedelta(seconds=5), budget(retries))
    assert found.outcome is outcome
    assert found.error is not None
    assert found.error.code == timeout.value
    assert "5 s" in found.error.message
