"""What an ended attempt means for its action: succeed, try again, or fail. Pure.

User, system and infrastructure failures have budgets of their own. The rules (source: the SDK
runtime's exit contract): `error.pb` counts before `outputs.pb`; a user's exception ends with exit
code 0 and an `error.pb`; exit code 0 with neither file is a failure.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum

from flyteidl2.core import execution_pb2

from flyte_binary.domain.task_limits import Limits
from flyte_binary.executor.backend import AttemptPhase, AttemptState

USER = execution_pb2.ExecutionError.USER
SYSTEM = execution_pb2.ExecutionError.SYSTEM
RECOVERABLE = execution_pb2.ContainerError.RECOVERABLE
NON_RECOVERABLE = execution_pb2.ContainerError.NON_RECOVERABLE


class Timeout(Enum):
    QUEUED = "QUEUED_TIMEOUT_EXCEEDED"
    MAX_RUNTIME = "MAX_RUNTIME_EXCEEDED"
    DEADLINE = "DEADLINE_EXCEEDED"


class Outcome(Enum):
    SUCCEED = "succeed"
    RETRY = "retry"
    FAIL = "fail"
    TIME_OUT = "time out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """How often the attempts of an action have failed, by whose fault."""

    user: int = 0
    system: int = 0
    infrastructure: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What an action has used up and what it may use."""

    failures: Failures
    limits: Limits
    max_retries: int
    max_system_failures: int
    max_infrastructure_failures: int

    @property
    def retries(self) -> int:
        return min(self.limits.retries, self.max_retries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    outcome: Outcome
    failures: Failures
    """The counters after this attempt."""
    error: execution_pb2.ExecutionError | None = None
    delay: timedelta = timedelta(0)
    """Before the next attempt."""


def judge(
    state: AttemptState,
    document: execution_pb2.ContainerError | None,
    *,
    has_outputs: bool,
    log_tail: str,
    budget: Budget,
) -> Verdict:
    """Judge an attempt that is over. `document` is what `error.pb` holds, None if there is none."""
    if state.phase is AttemptPhase.ABSENT:
        return _after_loss(budget)
    if state.out_of_memory:
        return after_user_failure(_error("OOMKilled", _with_tail(state.reason or "out of memory", log_tail)), budget)
    if document is not None:
        return _after_document(document, budget)
    if state.invalid:
        return _fail(_error("BadTaskSpecification", state.reason, recoverability=NON_RECOVERABLE), budget)
    if state.exit_code == 0 and has_outputs:
        return Verdict(outcome=Outcome.SUCCEED, failures=budget.failures)
    return after_user_failure(_died(state, log_tail), budget)


def after_timeout(timeout: Timeout, limit: timedelta, budget: Budget) -> Verdict:
    """The deadline is final; the limits of one attempt use up a retry."""
    error = _error(timeout.value, f"{_TIMEOUT_TEXT[timeout]} {_seconds(limit)}")
    failures = replace(budget.failures, user=budget.failures.user + 1)
    if timeout is not Timeout.DEADLINE and failures.user <= budget.retries:
        return _retry_user(error, failures, budget)
    return Verdict(outcome=Outcome.TIME_OUT, error=error, failures=failures)


def after_user_failure(error: execution_pb2.ExecutionError, budget: Budget) -> Verdict:
    failures = replace(budget.failures, user=budget.failures.user + 1)
    if error.recoverability == RECOVERABLE and failures.user <= budget.retries:
        return _retry_user(error, failures, budget)
    return Verdict(outcome=Outcome.FAIL, error=error, failures=failures)


def after_system_failure(error: execution_pb2.ExecutionError, budget: Budget) -> Verdict:
    failures = replace(budget.failures, system=budget.failures.system + 1)
    if failures.system > budget.max_system_failures:
        return Verdict(outcome=Outcome.FAIL, error=error, failures=failures)
    return Verdict(outcome=Outcome.RETRY, error=error, failures=failures, delay=_pause(failures.system))


def _after_loss(budget: Budget) -> Verdict:
    failures = replace(budget.failures, infrastructure=budget.failures.infrastructure + 1)
    if failures.infrastructure > budget.max_infrastructure_failures:
        return Verdict(outcome=Outcome.FAIL, error=_lost(), failures=failures)
    return Verdict(outcome=Outcome.RETRY, error=_lost(), failures=failures, delay=_pause(failures.infrastructure))


def _pause(failures: int) -> timedelta:
    return timedelta(seconds=min(0.5 * 2 ** (failures - 1), 30))


def _after_document(document: execution_pb2.ContainerError, budget: Budget) -> Verdict:
    error = execution_pb2.ExecutionError(
        code=document.code,
        message=document.message,
        kind=document.origin,
        recoverability=document.kind,
    )
    if document.kind != RECOVERABLE:
        return _fail(error, budget)
    if document.origin == SYSTEM:
        return after_system_failure(error, budget)
    return after_user_failure(error, budget)


def _retry_user(error: execution_pb2.ExecutionError, failures: Failures, budget: Budget) -> Verdict:
    return Verdict(
        outcome=Outcome.RETRY, error=error, failures=failures, delay=budget.limits.backoff.delay(failures.user)
    )


def _fail(error: execution_pb2.ExecutionError, budget: Budget) -> Verdict:
    failures = replace(budget.failures, user=budget.failures.user + 1)
    return Verdict(outcome=Outcome.FAIL, error=error, failures=failures)


def _died(state: AttemptState, log_tail: str) -> execution_pb2.ExecutionError:
    code = state.exit_code
    if code is None or code == 0:
        return _error("OutputsNotFound", _with_tail("the task ended without writing outputs or an error", log_tail))
    if code > 0:
        return _error("ExitCode", _with_tail(f"the task's process ended with exit code {code}", log_tail))
    return _error("Killed", _with_tail(f"the task's process was killed by {_signal_name(-code)}", log_tail))


def _lost() -> execution_pb2.ExecutionError:
    return execution_pb2.ExecutionError(
        code="AttemptLost",
        message="the attempt disappeared without an exit status: it was killed from outside, or the machine restarted",
        kind=SYSTEM,
        recoverability=RECOVERABLE,
    )


def _error(
    code: str, message: str, *, recoverability: execution_pb2.ContainerError.Kind = RECOVERABLE
) -> execution_pb2.ExecutionError:
    return execution_pb2.ExecutionError(code=code, message=message, kind=USER, recoverability=recoverability)


def _with_tail(message: str, log_tail: str) -> str:
    return f"{message}. The end of its log:\n{log_tail}" if log_tail else message


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _seconds(limit: timedelta) -> str:
    return f"{limit.total_seconds():g} s"


_TIMEOUT_TEXT = {
    Timeout.QUEUED: "not launched within",
    Timeout.MAX_RUNTIME: "still running after",
    Timeout.DEADLINE: "not finished within its deadline of",
}
