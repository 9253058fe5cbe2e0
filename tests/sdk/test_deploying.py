"""Deployed tasks: by the SDK and by the command line, found and run."""

from __future__ import annotations

from tests.sdk.command_line import Flyte
from tests.sdk.sdk import Sdk


def test_deployed_tasks_are_listed_and_run_in_the_version_that_was_asked_for(sdk: Sdk) -> None:
    names = sdk.call("deploy", environment="hello.env", version="v-one")
    assert {"hello.greet", "hello.main", "hello.double"} <= set(names)

    latest = sdk.finish(sdk.call("start_deployed", task="hello.main", inputs={"name": "Ada"}))
    chosen = sdk.finish(sdk.call("start_deployed", task="hello.main", inputs={"name": "Bo"}, version="v-one"))
    assert [latest.result(), chosen.result()] == ["Hello, Ada!", "Hello, Bo!"]
    assert chosen.details["task"]["taskTemplate"]["id"]["version"] == "v-one"


def test_deploying_the_same_version_again_is_accepted(sdk: Sdk) -> None:
    first = sdk.call("deploy", environment="nested.env", version="same")
    assert sdk.call("deploy", environment="nested.env", version="same") == first


def test_the_command_line_deploys_runs_and_shows_a_task(sdk: Sdk, flyte: Flyte) -> None:
    deployed = flyte("deploy", "--version", "cli-1", "recovering.py", "env")
    assert deployed.code == 0, deployed.text

    started = flyte("run", "--name", "deployed-by-cli", "deployed-task", "recovering.part", "--folder", "", "--x", "5")
    assert started.code == 0, started.text
    assert "deployed-by-cli" in started.text
    assert sdk.finish("deployed-by-cli").result() == 5
    (shown,) = flyte.all("--output-format json-raw get task recovering.part")
    assert [task["taskId"]["version"] for task in shown.json()] == ["cli-1"]
