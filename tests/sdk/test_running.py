"""Runs that go well: one task, many, deep, synchronous, asynchronous, mapped, limited."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.sdk.sdk import Look, Sdk, settled, until
from tests.sdk.serving import Server

SERVICE = "flyteidl2.workflow.RunService"


def test_a_task_that_calls_a_task_returns_its_result(sdk: Sdk) -> None:
    run = sdk.run("hello.main", name="Ada")

    assert run.result() == "Hello, Ada!"
    assert [(line.task, line.phase, line.parent) for line in sdk.actions(run.run)] == [
        ("main", "succeeded", ""),
        ("greet", "succeeded", "a0"),
    ]


def test_synchronous_tasks_call_each_other(sdk: Sdk) -> None:
    assert sdk.run("hello.quadruple", x=3).result() == 12
    assert sdk.run("hello.mixed", x=3).result() == 7


def test_a_task_without_a_result_succeeds(sdk: Sdk) -> None:
    run = sdk.run("hello.nothing")

    assert run.result() is None


def test_names_and_values_may_be_in_any_language(sdk: Sdk) -> None:
    extras = {"ключ": "значение", "emoji": "🧪", "empty": ""}
    run = sdk.run("hello.挨拶", 名前="世界", extras=extras)

    assert (run.phase, run.outputs) == ("succeeded", ["こんにちは、世界", extras])
    assert run.inputs == {"名前": "世界", "extras": extras}
    assert " こんにちは 世界 👋\n" in sdk.call("logs", run=run.run)


def test_a_hundred_children_at_once(sdk: Sdk) -> None:
    run = sdk.run("fan.squares", n=100)

    assert run.result() == sum(x * x for x in range(100))
    lines = sdk.actions(run.run)
    assert len(lines) == 101
    assert {line.phase for line in lines} == {"succeeded"}
    assert {line.group for line in lines[1:]} == {"squares"}


def test_recursion_deeper_than_there_are_cores_ends(sdk: Sdk) -> None:
    run = sdk.run("fan.down", depth=30)

    assert run.result() == 30
    assert len(sdk.actions(run.run)) == 31


def test_a_map_keeps_the_order_and_names_its_group(sdk: Sdk) -> None:
    run = sdk.run("fan.mapped", n=5, offset=10)

    assert run.result() == [10, 11, 12, 13, 14]
    assert {line.group for line in sdk.actions(run.run)[1:]} == {"fan.shifted_shift"}


def test_a_run_runs_no_more_actions_at_a_time_than_it_may(sdk: Sdk) -> None:
    free = sdk.run("fan.spans", n=6)
    limited = sdk.run("fan.spans", options={"max_action_concurrency": 2}, n=6)

    assert most_at_once(free.result()) > 2
    assert most_at_once(limited.result()) <= 2


def most_at_once(spans: list[list[float]]) -> int:
    ups_and_downs = sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans])
    now = most = 0
    for _, change in ups_and_downs:
        now += change
        most = max(most, now)
    return most


def test_a_run_started_inside_a_task_is_a_run_of_its_own(sdk: Sdk) -> None:
    outer = sdk.run("nested.outer", x=5)

    name, result = outer.outputs
    assert result == 6
    inner = sdk.look(name)
    assert inner.result() == 6
    assert inner.details["metadata"]["relation"] == {
        "relatedTo": {"project": "flytesnacks", "domain": "development", "name": outer.run},
        "relationType": "RELATION_TYPE_SPAWN",
    }


def test_a_pickled_task_runs_with_its_children(sdk: Sdk) -> None:
    assert sdk.run("interactive.main", options={"interactive_mode": True}, x=2).result() == 18


def test_waiting_for_a_run_takes_one_subscription(sdk: Sdk, server: Server, tmp_path: Path) -> None:
    """A watch that closes before it has told the last phase makes the SDK come again after half a second."""
    watches, lookups = f"{SERVICE}/WatchActionDetails", f"{SERVICE}/GetRunDetails"
    names = [sdk.start("misbehaving.talks_slowly", release=str(tmp_path / "go")) for _ in range(2)]
    watched, looked_up = server.requests(watches), server.requests(lookups)

    finishing = [sdk.begin("finish", run=name) for name in names]
    until(lambda: server.requests(lookups) - looked_up == len(names), "the SDK has found the runs unfinished")
    (tmp_path / "go").touch()
    for future in finishing:
        assert Look(**settled(future)).phase == "succeeded"

    until(lambda: server.requests(watches) - watched >= len(names), "the server noticed that the SDK has left")
    assert server.requests(watches) - watched == len(names)


def test_phases_of_an_attempt_are_told_in_order_with_their_times(sdk: Sdk) -> None:
    run = sdk.run("hello.main", name="times")

    (attempt,) = run.attempts
    transitions = attempt["phaseTransitions"]
    phases = [transition["phase"].removeprefix("ACTION_PHASE_") for transition in transitions]
    assert phases[0] == "QUEUED"
    assert phases[-2:] == ["RUNNING", "SUCCEEDED"]
    times = [transition["startTime"] for transition in transitions]
    assert all(earlier <= later for earlier, later in pairwise(times))
