"""Steps that a task records: seen in the run, and not done twice."""

from __future__ import annotations

from pathlib import Path

from tests.sdk.marks import count
from tests.sdk.sdk import Sdk


def test_steps_are_shown_as_actions_with_their_values(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("traces.steps", folder=str(tmp_path))

    assert run.result() == 23
    steps = sdk.actions(run.run)[1:]
    assert [(line.task, line.phase, line.parent) for line in steps] == [("step", "succeeded", "a0")] * 2
    assert count(tmp_path, "step-*") == 2


def test_a_step_that_fails_raises_in_its_task_and_is_shown_failed(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("traces.survives", folder=str(tmp_path))

    assert run.result() == "ValueError: 7 is not good"
    (step,) = sdk.actions(run.run)[1:]
    assert (step.task, step.phase) == ("bad", "failed")
    assert "7 is not good" in sdk.look(run.run, step.name).error
    assert count(tmp_path, "bad-7") == 1


def test_the_next_attempt_replays_what_went_well(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("traces.again", folder=str(tmp_path))

    assert run.result() == 32
    assert len(run.attempts) == 2
    assert count(tmp_path, "step-1") == 1, "the body of the step ran once"
    assert count(tmp_path, "child") == 1, "and so did the child task"
