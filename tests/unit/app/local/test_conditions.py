"""What clients see of an app on this machine: the last condition is what they take for its status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from flyte_binary.app.backend import DeploymentStatus as Status
from flyte_binary.app.backend import Substate
from flyte_binary.app.local.conditions import Facts, Failure, conditions_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAILURE = Failure(message="it ended with exit code 1", since=NOW, revision=2)


@pytest.mark.parametrize(
    ("facts", "status", "substate"),
    [
        (Facts(revision=1, stopped=True), Status.DEPLOYMENT_STATUS_STOPPED, Substate.SUBSTATE_UNSPECIFIED),
        (Facts(revision=1, stopped=True, ending=1), Status.DEPLOYMENT_STATUS_SCALING_DOWN, Substate.SCALING_DOWN),
        (Facts(revision=1, starting=1), Status.DEPLOYMENT_STATUS_DEPLOYING, Substate.INITIALIZING),
        (Facts(revision=1, proven=True, ready=2), Status.DEPLOYMENT_STATUS_ACTIVE, Substate.RUNNING),
        (Facts(revision=1, proven=True), Status.DEPLOYMENT_STATUS_ACTIVE, Substate.SCALED_TO_ZERO),
        (Facts(revision=1, proven=True, starting=1), Status.DEPLOYMENT_STATUS_ACTIVE, Substate.SCALING_FROM_ZERO),
        (Facts(revision=2, failure=FAILURE), Status.DEPLOYMENT_STATUS_FAILED, Substate.CRASH_LOOP),
        (Facts(revision=2, proven=True, failure=FAILURE), Status.DEPLOYMENT_STATUS_FAILED, Substate.CRASH_LOOP),
    ],
)
def test_each_state_has_its_word(facts: Facts, status: int, substate: int) -> None:
    (condition,) = conditions_of(facts, (), NOW)
    assert (condition.status, condition.substate) == (status, substate)


def test_a_failing_rollout_is_seen_although_the_older_revision_serves() -> None:
    older, overall = conditions_of(Facts(revision=2, serving_revision=1, failure=FAILURE), (), NOW)
    assert (older.status, older.revision) == (Status.DEPLOYMENT_STATUS_ACTIVE, 1)
    assert (overall.status, overall.revision) == (Status.DEPLOYMENT_STATUS_FAILED, 2)
    assert overall.message == FAILURE.message


def test_what_has_not_changed_keeps_its_time() -> None:
    before = conditions_of(Facts(revision=1, proven=True, ready=1), (), NOW)
    later = NOW + timedelta(minutes=1)
    assert conditions_of(Facts(revision=1, proven=True, ready=1), before, later) == before
    (changed,) = conditions_of(Facts(revision=1, proven=True), before, later)
    assert changed.since == later
