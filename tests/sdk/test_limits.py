"""Time that runs out: while running, while waiting, over all attempts."""

from __future__ import annotations

from pathlib import Path

import psutil

from tests.sdk.marks import count, marks
from tests.sdk.sdk import Sdk, until


def test_an_attempt_that_runs_too_long_is_ended(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("limits.too_long", folder=str(tmp_path))

    assert (run.phase, run.raised) == ("timed_out", "MaxRuntimeExceededError")
    (mark,) = marks(tmp_path, "too_long")
    until(lambda: not psutil.pid_exists(mark.pid), "the end of its process")


def test_an_attempt_that_ran_too_long_is_tried_again_if_it_may(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("limits.at_first_too_long", folder=str(tmp_path))

    assert run.result() == 1
    assert count(tmp_path, "tried") == len(run.attempts) == 2


def test_an_action_that_waits_too_long_for_its_turn_is_ended(sdk: Sdk, tmp_path: Path) -> None:
    busy = sdk.start("limits.takes_all", folder=str(tmp_path))
    until(lambda: count(tmp_path, "started") == 1, "all cores are taken")
    run = sdk.run("limits.waits_in_vain")
    (tmp_path / "go").touch()

    assert (run.phase, run.raised) == ("timed_out", "MaxQueuedTimeExceededError")
    assert sdk.finish(busy).phase == "succeeded"


def test_a_deadline_counts_all_attempts_together(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("limits.over_the_deadline", folder=str(tmp_path))

    assert (run.phase, run.raised) == ("timed_out", "DeadlineExceededError")
    assert 1 <= count(tmp_path, "tried") < 5
