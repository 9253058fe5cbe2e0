"""What a task sees of where it runs: variables, context, its folder."""

from __future__ import annotations

import os
from pathlib import Path

from tests.sdk.sdk import Sdk
from tests.sdk.serving import Server

NAMES = ["FROM_TASK", "FROM_RUN", "BOTH"]


def test_variables_come_from_the_task_and_above_it_from_the_run(sdk: Sdk) -> None:
    run = sdk.run("surroundings.variables", options={"env_vars": {"FROM_RUN": "run ☂", "BOTH": "run"}}, names=NAMES)

    assert run.result() == ["task", "run ☂", "run"]


def test_children_have_the_variables_of_their_run(sdk: Sdk) -> None:
    options = {"env_vars": {"FROM_RUN": "run", "BOTH": "run"}}
    assert sdk.run("surroundings.child_variables", options=options, names=NAMES).result() == ["task", "run", "run"]


def test_a_task_does_not_see_the_environment_of_the_server(sdk: Sdk, server: Server) -> None:
    environment = Path(f"/proc/{server.pid}/environ").read_bytes().decode().split("\0")
    assert f"HOME={server.folder}" in environment

    home, path = sdk.run("surroundings.variables", names=["HOME", "PATH"]).result()
    assert home != str(server.folder)
    assert path != os.environ["PATH"]


def test_the_context_of_a_run_reaches_children_and_grows_on_the_way(sdk: Sdk) -> None:
    context = {"team": "ταῦρος"}
    assert sdk.run("surroundings.context", options={"custom_context": context}).result() == context
    child = sdk.run("surroundings.child_context", options={"custom_context": context})
    assert child.result() == {**context, "added": "by the parent"}


def test_each_attempt_has_a_fresh_folder_that_holds_only_its_code(sdk: Sdk) -> None:
    first = sdk.run("surroundings.folder").result()
    second = sdk.run("surroundings.folder").result()

    assert first[0] != second[0]
    assert "surroundings.py" in second
    assert first[1:] == second[1:]


def test_labels_find_a_run_again(sdk: Sdk) -> None:
    run = sdk.start("hello.main", options={"labels": {"team": "ml"}}, name="labelled")
    other = sdk.start("hello.main", options={"labels": {"team": "web"}}, name="labelled")

    found = sdk.call("runs", with_labels={"team": "ml"})
    assert run in found and other not in found
    assert {sdk.finish(run).phase, sdk.finish(other).phase} == {"succeeded"}
