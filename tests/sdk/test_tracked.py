"""`flyte run --tracked`: runs of the client's own machine, kept and shown by the server."""

from __future__ import annotations

from tests.sdk.command_line import Flyte
from tests.sdk.sdk import Sdk


def test_a_tracked_run_is_shown_with_its_values_children_and_report(sdk: Sdk, flyte: Flyte) -> None:
    done = flyte("run", "--tracked", "--tracked-strict", "--name", "local-parent", "tracked.py", "parent", "--x", "4")
    assert done.code == 0, done.text
    look = sdk.look("local-parent")
    assert look.details["metadata"]["source"] == "RUN_SOURCE_TRACKED"
    assert look.details["status"]["phase"] == "ACTION_PHASE_SUCCEEDED"
    assert look.inputs == {"x": 4}
    assert look.outputs == [9]
    actions = sdk.call("actions", run="local-parent")
    names = {action["metadata"].get("funtionName"): action for action in actions}
    assert set(names) == {"tracked.parent", "tracked.flaky", "noted"}
    flaky = names["tracked.flaky"]
    assert flaky["metadata"]["parent"] == "a0"
    assert flaky["status"]["phase"] == "ACTION_PHASE_SUCCEEDED"
    assert flaky["status"]["attempts"] == 2
    child = sdk.look("local-parent", flaky["id"]["name"])
    assert (child.inputs, child.outputs) == ({"x": 4}, [8])
    assert "all done" in sdk.call("report", run="local-parent")


def test_a_tracked_run_that_fails_says_why(sdk: Sdk, flyte: Flyte) -> None:
    done = flyte("run", "--tracked", "--tracked-strict", "--name", "local-broken", "tracked.py", "broken")
    assert done.code != 0
    look = sdk.look("local-broken")
    assert look.details["status"]["phase"] == "ACTION_PHASE_FAILED"
    assert "this task is broken" in look.details["errorInfo"]["message"]
