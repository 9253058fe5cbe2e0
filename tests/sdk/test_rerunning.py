"""A run once more: as it was, with other inputs, and from where it failed."""

from __future__ import annotations

from pathlib import Path

from tests.sdk.command_line import Flyte
from tests.sdk.marks import count
from tests.sdk.sdk import Look, Sdk


def _failed(sdk: Sdk, tmp_path: Path) -> Look:
    run = sdk.run("recovering.whole", folder=str(tmp_path))
    assert run.phase == "failed" and "part 2 is broken" in run.error
    (tmp_path / "repaired").touch()
    return run


def _relation(look: Look) -> tuple[str, str]:
    relation = look.details["metadata"]["relation"]
    return relation["relationType"].removeprefix("RELATION_TYPE_"), relation["relatedTo"]["name"]


def test_a_rerun_does_everything_again_with_the_same_inputs(sdk: Sdk, tmp_path: Path) -> None:
    before = _failed(sdk, tmp_path)
    again = sdk.finish(sdk.call("rerun", run=before.run, inputs={}))

    assert again.result() == 3
    assert _relation(again) == ("RERUN", before.run)
    assert [count(tmp_path, f"part-{x}") for x in range(3)] == [2, 2, 2]


def test_a_rerun_takes_other_inputs(sdk: Sdk) -> None:
    before = sdk.run("hello.main", name="Ada")
    again = sdk.finish(sdk.call("rerun", run=before.run, inputs={"name": "Bo"}))

    assert again.result() == "Hello, Bo!"


def test_a_rerun_of_one_action_makes_it_the_root(sdk: Sdk) -> None:
    before = sdk.run("hello.main", name="Ada")
    child = sdk.actions(before.run)[1].name
    again = sdk.finish(sdk.call("rerun", run=before.run, inputs={}, options={"action_name": child}))

    assert again.result() == "Hello, Ada!"
    assert [line.task for line in sdk.actions(again.run)] == ["greet"]


def test_recovering_keeps_what_went_well(sdk: Sdk, tmp_path: Path) -> None:
    before = _failed(sdk, tmp_path)
    again = sdk.finish(sdk.call("rerun", run=before.run, inputs={}, options={"recover": True}))

    assert again.result() == 3
    assert _relation(again) == ("RECOVER", before.run)
    assert [line.phase for line in sdk.actions(again.run)] == ["succeeded", "recovered", "recovered", "succeeded"]
    assert [count(tmp_path, f"part-{x}") for x in range(3)] == [1, 1, 2]


def test_recovering_a_recovered_run_keeps_it_all(sdk: Sdk, tmp_path: Path) -> None:
    before = _failed(sdk, tmp_path)
    second = sdk.finish(sdk.call("rerun", run=before.run, inputs={}, options={"recover": True}))
    third = sdk.finish(sdk.call("rerun", run=second.run, inputs={}, options={"recover": True}))

    assert third.result() == 3
    assert [count(tmp_path, f"part-{x}") for x in range(3)] == [1, 1, 2]


def test_recovering_runs_again_what_it_is_told_to(sdk: Sdk, tmp_path: Path) -> None:
    before = _failed(sdk, tmp_path)
    options = {"recover": True, "force_rerun_actions": [sdk.actions(before.run)[1].name]}
    again = sdk.finish(sdk.call("rerun", run=before.run, inputs={"factor": 10}, options=options))

    assert again.result() == 30
    assert [count(tmp_path, f"part-{x}") for x in range(3)] == [2, 1, 2]


def test_the_command_line_recovers_with_other_inputs(sdk: Sdk, flyte: Flyte, tmp_path: Path) -> None:
    before = _failed(sdk, tmp_path)
    done = flyte("rerun", "--name", "recovered-by-cli", "--recover", before.run, "--factor", "100")
    assert done.code == 0, done.text

    assert sdk.finish("recovered-by-cli").result() == 300
    assert [count(tmp_path, f"part-{x}") for x in range(3)] == [1, 1, 2]
