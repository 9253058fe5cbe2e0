"""Triggers: deployed with a task, fired by the clock and by hand, looked at and changed by the command line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.sdk.command_line import Flyte
from tests.sdk.sdk import Look, Sdk, until
from tests.sdk.serving import Server, serving, write_client_config

TASK = "triggering.tick"


def triggered(sdk: Sdk, trigger: str = "often") -> list[Look]:
    """The runs of a trigger as the SDK sees them now, the newest first."""
    looks = [sdk.look(run) for run in sdk.call("runs", task_name=TASK)]
    found = [look for look in looks if look.details["metadata"].get("triggerName") == trigger]
    return sorted(found, key=lambda look: look.details["status"]["startTime"], reverse=True)


def runs(sdk: Sdk) -> int:
    return len(sdk.call("runs", task_name=TASK))


@pytest.fixture
def deployed(sdk: Sdk) -> Iterator[str]:
    """The version of the task; afterwards none of its triggers fires any more."""
    sdk.call("deploy", environment="triggering.env", version="t1")
    yield "t1"
    # A version without triggers would leave those alone that tests made on their own.
    sdk.call("delete_triggers", task=TASK)
    sdk.call("delete_triggers", task="triggering.plain")


def test_a_deployed_trigger_fires_with_its_inputs_and_its_time(sdk: Sdk, deployed: str) -> None:
    until(lambda: len(triggered(sdk)) >= 2, "two runs were fired")
    first, second = (sdk.finish(look.run) for look in reversed(triggered(sdk)[-2:]))
    times: list[datetime] = []
    for look in (first, second):
        time, x = look.result().split(" ")
        assert x == "5"
        assert look.inputs["x"] == 5
        assert datetime.fromisoformat(look.inputs["t"]) == datetime.fromisoformat(time)
        metadata = look.details["metadata"]
        assert metadata["source"] == "RUN_SOURCE_SCHEDULE_TRIGGER"
        assert metadata["triggerId"]["name"]["taskName"] == TASK
        assert metadata["task"]["id"]["version"] == deployed
        times.append(datetime.fromisoformat(time))
    gap = (times[1] - times[0]).total_seconds()
    assert gap > 0 and gap % 2 == 0


def test_the_command_line_shows_pauses_and_deletes_triggers(sdk: Sdk, flyte: Flyte, deployed: str) -> None:
    shown, one, table = flyte.all("--output-format json-raw get trigger", f"get trigger {TASK} often", "get trigger")
    names = {item["id"]["name"]["name"]: item for item in shown.json() if item["id"]["name"]["taskName"] == TASK}
    assert set(names) == {"often", "yearly", "by-hand"}
    assert names["often"]["active"] and not names["yearly"].get("active", False)
    for word in ("often", "@every 2s", 'kickoff_time_input_arg: "t"', "task_version: "):
        assert word in one.text
    for word in ("often", "yearly", "by-hand", "@every 2s"):
        assert word in table.text

    paused = flyte("update", "trigger", "often", TASK, "--deactivate")
    assert paused.code == 0, paused.text
    made = runs(sdk)
    assert not sdk.call("triggers", task=TASK)["often"].get("active", False)
    assert runs(sdk) == made

    resumed = flyte("update", "trigger", "often", TASK, "--activate")
    assert resumed.code == 0, resumed.text
    until(lambda: runs(sdk) > made, "it fires again")

    deleted = flyte("delete", "trigger", "often", TASK)
    assert deleted.code == 0, deleted.text
    gone = flyte("get", "trigger", TASK, "often")
    assert gone.code != 0 and "not found" in gone.text
    assert set(sdk.call("triggers", task=TASK)) == {"yearly", "by-hand"}


def test_a_trigger_is_fired_by_hand_with_and_without_other_inputs(sdk: Sdk, deployed: str) -> None:
    as_it_is = sdk.finish(sdk.call("fire", trigger="by-hand", task=TASK, inputs={}))
    changed = sdk.finish(sdk.call("fire", trigger="by-hand", task=TASK, inputs={"x": 8}))
    kickoff = sdk.finish(sdk.call("fire", trigger="yearly", task=TASK, inputs={"x": 9}))
    assert as_it_is.result().startswith("2020-01-01T00:00:00") and as_it_is.result().endswith(" 3")
    assert changed.result().startswith("2020-01-01T00:00:00") and changed.result().endswith(" 8")
    assert kickoff.result().endswith(" 9")
    started = datetime.fromisoformat(kickoff.details["status"]["startTime"])
    filled_in = datetime.fromisoformat(kickoff.result().split(" ")[0])
    assert abs((started - filled_in).total_seconds()) < 5
    for look in (as_it_is, changed, kickoff):
        assert look.details["metadata"]["triggerName"] in ("by-hand", "yearly")


def test_the_command_line_makes_a_trigger_for_a_deployed_task(sdk: Sdk, flyte: Flyte, deployed: str) -> None:
    made = flyte(
        "create", "trigger", "triggering.plain", "nightly", "--schedule", "0 3 * * *", "--trigger-time-var", "t"
    )
    assert made.code == 0, made.text
    (trigger,) = sdk.call("triggers", task="triggering.plain").values()
    assert trigger["automationSpec"]["schedule"]["cron"]["expression"] == "0 3 * * *"
    never = flyte(
        "create", "trigger", "triggering.plain", "never", "--schedule", "0 0 30 2 *", "--trigger-time-var", "t"
    )
    assert never.code != 0 and "it would never run" in never.text
    assert set(sdk.call("triggers", task="triggering.plain")) == {"nightly"}


def test_a_task_that_is_deployed_without_a_trigger_loses_it(sdk: Sdk, deployed: str) -> None:
    assert "often" in sdk.call("triggers", task=TASK)
    sdk.call("deploy", environment="triggering_less.env", version="t2")
    assert sdk.call("triggers", task=TASK) == {}
    made = runs(sdk)
    assert sdk.call("triggers", task=TASK) == {}
    assert runs(sdk) == made


def test_triggers_go_on_after_the_server_was_killed(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving(tmp_path_factory.mktemp("triggered")) as server:
        sdk = Sdk(write_client_config(server, server.folder / "client.yaml"), server.folder)
        try:
            fire_through_a_kill(server, sdk)
        finally:
            sdk.close()


def fire_through_a_kill(server: Server, sdk: Sdk) -> None:
    sdk.call("deploy", environment="triggering.env", version="t1")
    until(lambda: runs(sdk) >= 1, "it fires")
    server.kill()
    server.start()
    before = runs(sdk)
    until(lambda: runs(sdk) >= before + 2, "it goes on firing")
    looks = [sdk.finish(look.run) for look in triggered(sdk)]
    times: list[Any] = [look.result() for look in looks]
    assert len(times) == len(set(times))
    server.check_log()
