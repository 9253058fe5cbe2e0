"""What is aborted ends with all that belongs to it, down to processes that a task started itself."""

from __future__ import annotations

from pathlib import Path

import psutil

from tests.sdk.marks import Mark, marks
from tests.sdk.sdk import Sdk, until


def _family(folder: Path) -> list[Mark]:
    """The processes of the family once all are there."""
    until(lambda: len(marks(folder, "*")) == 4, "parent, child, grandchild and its own process are there")
    return marks(folder, "*")


def _gone(processes: list[Mark]) -> None:
    until(lambda: not [one for one in processes if psutil.pid_exists(one.pid)], f"the end of {processes}", seconds=30)


def _phases(sdk: Sdk, run: str) -> dict[str, str]:
    return {line.task: line.phase for line in sdk.actions(run)}


def test_an_aborted_run_ends_with_its_whole_tree(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.start("aborting.family", folder=str(tmp_path))
    processes = _family(tmp_path)
    sdk.call("abort_run", run=run, reason="changed my mind")
    ended = sdk.finish(run)

    assert (ended.phase, ended.raised) == ("aborted", "ActionAbortedError")
    assert "changed my mind" in ended.details["abortInfo"]["reason"]
    assert _phases(sdk, run) == {"family": "aborted", "child": "aborted", "grandchild": "aborted"}
    _gone(processes)


def test_an_aborted_action_ends_with_its_subtree_and_its_parent_hears_of_it(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.start("aborting.family", folder=str(tmp_path))
    processes = _family(tmp_path)
    child = next(line.name for line in sdk.actions(run) if line.task == "child")
    sdk.call("abort_action", run=run, action=child, reason="not this one")

    assert sdk.finish(run).result() == "survived ActionAbortedError"
    assert _phases(sdk, run) == {"family": "succeeded", "child": "aborted", "grandchild": "aborted"}
    _gone(processes)


def test_a_parent_that_ends_takes_what_it_did_not_wait_for_with_it(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("aborting.leaves_behind", folder=str(tmp_path))

    assert run.result() == "left Task"
    sdk.until(run.run, lambda lines: all(line.phase in ("succeeded", "aborted") for line in lines))
    assert _phases(sdk, run.run) == {"leaves_behind": "succeeded", "child": "aborted", "grandchild": "aborted"}
    _gone(marks(tmp_path, "*"))


def test_a_child_that_its_parent_cancels_is_aborted(sdk: Sdk, tmp_path: Path) -> None:
    run = sdk.run("aborting.gives_up", folder=str(tmp_path))

    assert run.result() == "gave up"
    assert _phases(sdk, run.run) == {"gives_up": "succeeded", "child": "aborted", "grandchild": "aborted"}
    _gone(marks(tmp_path, "*"))


def test_aborting_what_has_ended_changes_nothing(sdk: Sdk) -> None:
    run = sdk.run("hello.main", name="done")
    sdk.call("abort_run", run=run.run, reason="too late")

    assert sdk.look(run.run).phase == "succeeded"
