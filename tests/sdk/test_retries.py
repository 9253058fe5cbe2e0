"""How often, how soon, and with what the next attempt starts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.sdk.marks import count, marks
from tests.sdk.sdk import Sdk


def test_a_task_is_tried_until_it_succeeds(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("retries.third_time", folder=str(tmp_path))

    assert run.result() == 3
    assert [mark.name for mark in marks(tmp_path, "*")] == ["attempt-0", "attempt-1", "attempt-2"]
    assert [attempt["phase"] for attempt in run.attempts] == [
        "ACTION_PHASE_FAILED",
        "ACTION_PHASE_FAILED",
        "ACTION_PHASE_SUCCEEDED",
    ]


def test_a_task_that_never_succeeds_fails_with_its_last_error(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("retries.never", folder=str(tmp_path))

    assert run.phase == "failed"
    assert "no, says attempt 2" in run.error
    assert count(tmp_path, "never") == len(run.attempts) == 2


def test_an_error_that_cannot_be_recovered_from_is_not_tried_again(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("retries.hopeless", folder=str(tmp_path))

    assert run.phase == "failed"
    assert "there is no point" in run.error
    assert count(tmp_path, "hopeless") == 1


def test_a_parent_catches_the_error_of_a_child(sdk: Sdk, tmp_path: Path) -> None:
    assert "no, says attempt 2" in sdk.run("retries.catches", folder=str(tmp_path)).result()


def test_the_pauses_between_attempts_grow_as_asked_for(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("retries.patient", folder=str(tmp_path))

    assert run.result() == 3
    pauses = [later.seconds - earlier.seconds for earlier, later in pairwise(marks(tmp_path, "attempt-*"))]
    for pause, least in zip(pauses, (0.4, 0.8, 0.8), strict=True):
        assert pause >= least


def test_an_attempt_goes_on_from_the_checkpoint_of_the_one_before(sdk: Sdk) -> None:
    assert sdk.run("retries.resumes").result() == ["attempt-0", "attempt-1", "attempt-2"]


def test_the_next_attempt_of_a_parent_runs_failed_children_again_and_no_others(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("retries.second_try", folder=str(tmp_path))

    assert run.result() == ["fine", "fine"]
    assert (count(tmp_path, "works"), count(tmp_path, "fails")) == (1, 2)


def test_each_attempt_keeps_its_own_log(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("retries.third_time", folder=str(tmp_path)).run

    for attempt in (1, 2, 3):
        lines = sdk.call("logs", run=run, attempt=attempt)
        assert [line for line in lines if "attempt number" in line] == [f" this is attempt number {attempt}\n"]
