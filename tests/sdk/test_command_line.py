"""The `flyte` command: starts, follows, shows and aborts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sdk.command_line import Done, Flyte
from tests.sdk.sdk import Line, Sdk

NAME = "shown-by-cli"


@pytest.fixture(scope="module")
def followed(flyte: Flyte) -> Done:
    """A run that the command has followed to its end."""
    return flyte("run", "--follow", "--name", NAME, "hello.py", "main", "--name", "Ada Ω")


def test_run_follows_the_log_to_the_end(sdk: Sdk, followed: Done) -> None:
    assert followed.code == 0, followed.text
    assert f"/v2/domain/development/project/flytesnacks/runs/{NAME}" in followed.text
    assert "Flyte runtime completed for action a0" in followed.text
    assert sdk.finish(NAME).result() == "Hello, Ada Ω!"


def test_a_name_that_is_taken_is_refused(flyte: Flyte, followed: Done) -> None:
    clash = flyte("run", "--name", NAME, "hello.py", "main")

    assert clash.code != 0
    assert NAME in clash.text and "already exists" in clash.text.lower()


def test_the_run_and_its_actions_are_shown(sdk: Sdk, flyte: Flyte, followed: Done) -> None:
    child = sdk.actions(NAME)[1].name
    runs, run, actions, action = flyte.all(
        "--output-format json-raw get run --task-name hello.main --limit 1000",
        f"--output-format json get run {NAME}",
        f"--output-format json-raw get action {NAME}",
        f"--output-format json get action {NAME} {child}",
    )

    assert NAME in [item["action"]["id"]["run"]["name"] for item in runs.json()]
    assert "'phase': 'ACTION_PHASE_SUCCEEDED'" in run.out
    assert [Line.from_dict(item).task for item in actions.json()] == ["main", "greet"]
    assert "'parent': 'a0'" in action.out


def test_inputs_outputs_logs_and_code_are_shown(sdk: Sdk, flyte: Flyte, followed: Done, tmp_path: Path) -> None:
    child = sdk.actions(NAME)[1].name
    root, of_child, log, code = flyte.all(
        f"get io {NAME}",
        f"get io {NAME} {child}",
        f"get logs {NAME} {child}",
        f"get code {NAME} --dest {tmp_path}/code",
    )

    for shown in (root, of_child):
        assert "Ada Ω" in shown.text and "Hello, Ada Ω!" in shown.text
    assert "greeting Ada Ω" in log.out
    assert code.code == 0, code.text
    assert "async def greet" in (tmp_path / "code" / "hello.py").read_text(encoding="utf-8")


def test_projects_are_shown_and_made(flyte: Flyte) -> None:
    made = flyte("create", "project", "--id", "own-project", "--name", "Own 項目", "--description", "made by the CLI")
    assert made.code == 0, made.text
    listed, one = flyte.all("--output-format json-raw get project", "get project own-project")

    assert {"flytesnacks", "own-project"} <= {item["id"] for item in listed.json()}
    assert "name='Own 項目'" in one.out


def test_a_run_is_aborted(sdk: Sdk, flyte: Flyte, tmp_path: Path) -> None:
    run = sdk.start("misbehaving.talks_slowly", release=str(tmp_path / "never"))
    done = flyte("abort", "run", run, "--reason", "by hand")

    assert done.code == 0, done.text
    ended = sdk.finish(run)
    assert ended.phase == "aborted"
    assert ended.details["abortInfo"]["reason"] == "by hand"


def test_nobody_is_logged_in(flyte: Flyte) -> None:
    """The server is open: it knows no users, and says so as the reference does."""
    (done,) = flyte.all("whoami")

    assert done.code != 0
    assert "no authenticated identity" in done.text


def test_what_is_not_there_is_said_to_be_not_there(flyte: Flyte) -> None:
    run, task = flyte.all("get run no-such-run", "run deployed-task no.such_task")

    assert run.code != 0 and "no-such-run" in run.text
    assert task.code != 0 and "no.such_task" in task.text
