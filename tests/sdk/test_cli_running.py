"""The command line: other ways to start a run, and a part of one aborted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sdk.command_line import Flyte
from tests.sdk.marks import marks
from tests.sdk.sdk import Sdk, until

IMAGE = "ghcr.io/flyteorg/flyte:py3.11-v2.12.1"
"""A name that stands for the default environment, so that nothing is built."""


def test_the_example_of_the_sdk_runs(sdk: Sdk, flyte: Flyte) -> None:
    done = flyte("run", "--name", "hello-of-sdk", "hello")

    assert done.code == 0, done.text
    assert "Created Run: hello-of-sdk" in done.text
    assert sdk.finish("hello-of-sdk").phase == "succeeded"


def test_a_plain_script_runs_with_its_arguments(sdk: Sdk, flyte: Flyte, tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text("import sys\nprint('plain', sys.argv[1:])\n")
    done = flyte("run", "--name", "plain-script", "python-script", str(script), "--image", IMAGE, "--extra-args", "a,b")
    assert done.code == 0, done.text
    assert sdk.finish("plain-script").phase == "succeeded"
    log, values = flyte.all("get logs plain-script", "get io plain-script")

    assert "plain ['a', 'b']" in log.out
    assert "exit_code=0" in values.text


def test_a_local_run_leaves_nothing_on_the_server(sdk: Sdk, flyte: Flyte) -> None:
    before = sdk.call("runs", task_name="hello.main")
    done = flyte("run", "--local", "hello.py", "main", "--name", "Local")

    assert done.code == 0, done.text
    assert "Completed Local Run" in done.text and "Hello, Local!" in done.text
    assert sdk.call("runs", task_name="hello.main") == before


@pytest.fixture(scope="module")
def deployed(flyte: Flyte) -> str:
    done = flyte("deploy", "--version", "shown-1", "hello.py", "env")
    assert done.code == 0, done.text
    assert "Deployed task hello.main (version shown-1)" in done.text
    return "hello.main:shown-1"


def test_deployed_tasks_are_offered_shown_and_run_by_version(sdk: Sdk, flyte: Flyte, deployed: str) -> None:
    offered, table, shown, started = flyte.all(
        "run deployed-task hello",
        "get task hello.main",
        "--output-format json get task hello.main shown-1",
        f"run --name chosen-version deployed-task {deployed} --name Version",
    )

    assert "hello.main" in offered.text and "hello.double" in offered.text
    assert "shown-1" in table.text
    assert "'environment': {'name': 'hello'}" in shown.text and "'stringValue': 'world'" in shown.text
    assert "Created Run: chosen-version" in started.text
    assert sdk.finish("chosen-version").result() == "Hello, Version!"


def test_an_environment_whose_image_is_there_is_not_built_again(flyte: Flyte) -> None:
    done = flyte("build", "hello.py", "env")

    assert done.code == 0, done.text
    assert "already exists, skipping build" in done.text and "Environment env built" in done.text


def test_a_run_is_started_again(sdk: Sdk, flyte: Flyte) -> None:
    first = sdk.run("hello.main", name="first").run
    done = flyte("rerun", "--name", "started-again", first, "--name", "second")
    same = flyte("rerun", "--name", "same-again", first)

    assert (done.code, same.code) == (0, 0), done.text + same.text
    assert sdk.finish("same-again").result() == "Hello, first!"


def test_one_action_is_aborted_and_its_run_goes_on(sdk: Sdk, flyte: Flyte, tmp_path: Path) -> None:
    run = sdk.start("aborting.family", folder=str(tmp_path))
    until(lambda: len(marks(tmp_path, "*")) == 4, "the family is there")
    child = next(line.name for line in sdk.actions(run) if line.task == "child")
    done = flyte("abort", "action", run, child, "--reason", "by hand")

    assert done.code == 0, done.text
    assert sdk.finish(run).result() == "survived ActionAbortedError"
    (shown,) = flyte.all(f"--output-format json get action {run} {child}")
    assert "ABORTED" in shown.text and "by hand" in shown.text


def test_runs_are_found_by_phase_and_label(sdk: Sdk, flyte: Flyte) -> None:
    labelled = sdk.start("hello.main", options={"labels": {"of-cli": "yes"}}, name="x")
    failed = sdk.run("misbehaving.exits").run
    sdk.finish(labelled)
    by_label, by_key, by_phase, table = flyte.all(
        "--output-format json-raw get run --with-label of-cli=yes",
        "--output-format json-raw get run --with-label-key of-cli",
        "--output-format json-raw get run --in-phase failed --limit 1000",
        "get run --limit 1",
    )

    for found in (by_label, by_key):
        assert [item["action"]["id"]["run"]["name"] for item in found.json()] == [labelled]
    names = [item["action"]["id"]["run"]["name"] for item in by_phase.json()]
    assert failed in names and labelled not in names
    assert table.code == 0 and "Runs" in table.text
