"""Tasks that end badly or take what is not theirs: said plainly, and cleaned up."""

from __future__ import annotations

from pathlib import Path

import psutil

from tests.sdk.marks import marks
from tests.sdk.sdk import Sdk, until


def test_a_module_that_fails_to_import_says_which_and_why(sdk: Sdk) -> None:
    run = sdk.run("broken.main")

    assert run.phase == "failed"
    assert "a_package_that_does_not_exist" in run.error
    assert "ModuleNotFoundError" in run.error


def test_a_process_that_leaves_is_reported_with_its_exit_code_and_last_lines(sdk: Sdk) -> None:
    run = sdk.run("misbehaving.exits")

    assert run.phase == "failed"
    assert "3" in run.error and "about to leave" in run.error


def test_a_task_that_calls_exit_fails(sdk: Sdk) -> None:
    run = sdk.run("misbehaving.exits_politely")

    assert run.phase == "failed"
    assert "4" in run.error


def test_a_process_that_is_killed_fails_with_the_signal(sdk: Sdk) -> None:
    run = sdk.run("misbehaving.killed")

    assert run.phase == "failed"
    assert "SIGKILL" in run.error or "signal 9" in run.error


def test_a_task_that_fills_its_memory_is_reported_as_such_with_the_tail_of_its_log(sdk: Sdk) -> None:
    run = sdk.run("misbehaving.hog")

    assert (run.phase, run.raised) == ("failed", "OOMError")
    assert " MB" in run.error, "the tail of the log"
    assert "300" in run.error, "the limit"


def test_processes_that_a_task_leaves_behind_end_with_it(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("misbehaving.forks", folder=str(tmp_path))

    own = run.result()
    left = [mark.pid for name in ("near", "far") for mark in marks(tmp_path, name)]
    assert len(left) == 2
    until(lambda: not [pid for pid in (own, *left) if psutil.pid_exists(pid)], "the end of what the task left behind")
