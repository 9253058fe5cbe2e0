"""The numbers of a group of runs."""

from __future__ import annotations

from typing import Any

from flyteidl2.common import identity_pb2
from flyteidl2.core import execution_pb2

from flyte_binary.db.run_listing import RunFacts
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.phases import Phase
from flyte_binary.runs.view.groups import RECENT_LIMIT, group_name_of, group_of
from flyte_binary.runs.watches.groups import Groups
from tests.unit.runs.rows import SECOND, START


def facts(name: str, phase: Phase = Phase.SUCCEEDED, *, after: int = 0, **more: Any) -> RunFacts:
    values: dict[str, Any] = {
        "run": RunId("p", "d", name),
        "phase": phase,
        "task_name": "env.hello",
        "short_name": "hello",
        "environment_name": "env",
        "created_at": START + after * SECOND,
        "ended_at": None,
        "running_at": None,
        "error": None,
        "created_by": None,
        **more,
    }
    return RunFacts(**values)


def error(kind: execution_pb2.ExecutionError.ErrorKind) -> bytes:
    return execution_pb2.ExecutionError(kind=kind).SerializeToString()


def test_failures_are_counted_by_their_kind_and_timeouts_are_failures() -> None:
    group = group_of(
        "env.hello",
        [
            facts("r1", Phase.FAILED, error=error(execution_pb2.ExecutionError.USER)),
            facts("r2", Phase.TIMED_OUT, error=error(execution_pb2.ExecutionError.SYSTEM)),
            facts("r3", Phase.FAILED),
            facts("r4"),
        ],
    )
    counts = group.error_counts
    assert (counts.user_error, counts.system_error, counts.unspecified_error) == (1, 1, 1)
    assert group.average_failure_rate == 0.75
    assert {(item.phase, item.count) for item in group.phase_counts} == {(5, 1), (6, 2), (8, 1)}


def test_times_are_averaged_over_the_runs_that_have_them() -> None:
    group = group_of(
        "env.hello",
        [
            facts("r1", ended_at=START + 4 * SECOND, running_at=START + SECOND),
            facts("r2", after=10, ended_at=START + 12 * SECOND, running_at=START + 10 * SECOND),
            facts("r3", Phase.RUNNING, after=20),
        ],
    )
    assert group.average_duration.ToMilliseconds() == 3000
    assert group.average_time_to_running.ToMilliseconds() == 500
    assert group.latest_run_time.ToMicroseconds() == START + 20 * SECOND
    assert group.latest_finished_time.ToMicroseconds() == START + 12 * SECOND


def test_the_newest_runs_are_listed_and_each_creator_once() -> None:
    ann = identity_pb2.EnrichedIdentity(user=identity_pb2.User(id={"subject": "ann"}))
    runs = [facts(f"r{number}", after=number, created_by=ann.SerializeToString()) for number in range(15)]
    group = group_of("env.hello", runs)

    assert [item.run_name for item in group.recent_statuses] == [f"r{number}" for number in range(14, 4, -1)]
    assert len(group.recent_statuses) == RECENT_LIMIT
    assert list(group.created_by) == [ann]
    assert group.total_runs == 15


def test_a_group_without_runs_that_ended_has_no_times() -> None:
    group = group_of("env.hello", [facts("r1", Phase.QUEUED)])
    assert not group.HasField("average_duration")
    assert not group.HasField("average_time_to_running")


def test_only_groups_that_look_different_are_news() -> None:
    groups = Groups([facts("r1"), facts("r2", task_name="env.other")])

    assert [group.task_name for group in groups.update([facts("r1", Phase.FAILED)])] == ["env.hello"]
    assert groups.update([facts("r1", Phase.FAILED)]) == []
    assert {group.task_name: group.total_runs for group in groups.all()} == {"env.hello": 1, "env.other": 1}


def test_a_run_is_grouped_by_the_best_name_it_has() -> None:
    assert group_name_of(facts("r1")) == "env.hello"
    assert group_name_of(facts("r1", task_name="")) == "hello"
    assert group_name_of(facts("r1", task_name="", short_name="")) == "a0"
