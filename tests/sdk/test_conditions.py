"""Runs that wait for somebody: answered through the SDK and the CLI, and not answered."""

from __future__ import annotations

from tests.sdk.command_line import Flyte
from tests.sdk.sdk import Line, Sdk, SdkError


def _paused(name: str, lines: list[Line]) -> bool:
    return any(line.task == name and line.phase == "paused" for line in lines)


def test_a_condition_is_approved_through_the_sdk(sdk: Sdk) -> None:
    run = sdk.start("conditions.approval")
    sdk.until(run, lambda lines: _paused("approve", lines))
    assert run in sdk.call("runs", paused_actions_only=True)
    sdk.call("signal", run=run, condition="approve", value=True)

    assert sdk.finish(run).result() == "approved"
    assert [line.phase for line in sdk.actions(run)] == ["succeeded", "succeeded"]
    assert run not in sdk.call("runs", paused_actions_only=True)


def test_a_condition_is_listed_and_rejected_through_the_command_line(sdk: Sdk, flyte: Flyte) -> None:
    run = sdk.start("conditions.approval")
    lines = sdk.until(run, lambda lines: _paused("approve", lines))
    condition = lines[-1].name

    listed = flyte("--output-format", "json-raw", "get", "condition", run).json()
    assert [(item["id"]["name"], item["metadata"]["condition"]["name"]) for item in listed] == [(condition, "approve")]
    signalled = flyte("signal", "condition", run, condition, "false")
    assert signalled.code == 0, signalled.text

    assert sdk.finish(run).result() == "rejected"


def test_answers_have_the_kind_that_was_asked_for(sdk: Sdk) -> None:
    run = sdk.start("conditions.survey")
    for name, answer in (("a-int", 7), ("a-float", 1.5), ("a-str", "schön 🎯")):
        sdk.until(run, lambda lines, name=name: _paused(name, lines))
        sdk.call("signal", run=run, condition=name, value=answer)

    assert sdk.finish(run).result() == ["7", "1.5", "'schön 🎯'"]


def test_an_answer_of_the_wrong_kind_is_refused_and_the_condition_stays_open(sdk: Sdk) -> None:
    run = sdk.start("conditions.approval")
    sdk.until(run, lambda lines: _paused("approve", lines))
    try:
        sdk.call("signal", run=run, condition="approve", value="yes")
    except SdkError as error:
        assert error.code == "invalid_argument"
    else:
        raise AssertionError("a text was taken for a bool")
    sdk.call("signal", run=run, condition="approve", value=True)

    assert sdk.finish(run).result() == "approved"


def test_a_condition_that_nobody_answers_times_out(sdk: Sdk) -> None:
    run = sdk.run("conditions.impatient")

    assert run.result() == "ConditionTimedoutError"
    assert [line.phase for line in sdk.actions(run.run)] == ["succeeded", "timed_out"]
