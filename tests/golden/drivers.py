"""The program that plays the driven conversations, and which scene plays which."""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

from tests.golden import scenes
from tests.golden.scenarios import MARK
from tests.golden.scenes import Driver, Stage, with_failure, with_outputs

DRIVERS: dict[str, Driver] = {
    "hello-run-and-wait": with_outputs("hello-run-and-wait", "hello", "simple", name="golden"),
    "fan-out-5": with_outputs("fan-out-5", "fan", "fan", n=5),
    "nested-run": with_outputs("nested-run", "nested", "main"),
    "failing-task": with_failure("failing-task", "trig", "fail", msg="golden failure"),
    "exit-code-3": with_failure("exit-code-3", "shapes", "exit3"),
    "retries-exhausted": with_failure("retries-exhausted", "canc", "flaky"),
    "retry-second-attempt-ok": with_outputs("retry-second-attempt-ok", "shapes", "second_time"),
    "void-task": with_outputs("void-task", "shapes", "nothing"),
    "trace-ok": with_outputs("trace-ok", "tr", "main"),
    "trace-failed": with_outputs("trace-failed", "trfail", "main"),
    "cache-miss": with_outputs("cache-miss", "cachet", "sq", x=7),
    "cache-hit": with_outputs("cache-hit", "cachet", "sq", x=7),
    "cache-child-hit": with_outputs("cache-child-hit", "cachet", "twice", x=7),
    "cache-serialize": with_outputs("cache-serialize", "cachet", "sersq", x=3),
    "fill-cache": scenes.fill_cache,
    "cache-hit-follow-logs": scenes.cache_hit_follow_logs,
    "condition-signal": scenes.condition_signal,
    "condition-timeout": with_outputs("condition-timeout", "gcond", "timed"),
    "task-timeout": with_outputs("task-timeout", "canc", "tmo"),
    "child-cancelled-by-parent": with_outputs("child-cancelled-by-parent", "canc", "main"),
    "abort-action": scenes.abort_action,
    "abort-run": scenes.abort_run,
    "abort-run-early": scenes.abort_run_early,
    "deploy": scenes.deploy,
    "run-deployed": scenes.run_deployed,
    "deploy-triggers": scenes.deploy_triggers,
    "redeploy-triggers": scenes.redeploy_triggers,
    "fire-hourly": scenes.fire_hourly,
    "recreate-secret": scenes.recreate_secret,
    "get-run-action-logs-io": scenes.look_at_everything,
    "rerun": scenes.rerun,
    "ui-watch-streams": scenes.watch_like_a_console,
}
"""Scenario → what plays it."""


def main(sdk_url: str, base_url: str, scratch: str) -> None:
    """Plays the scenarios named on standard input, one a line, and answers each with a line of JSON.

    A process of its own keeps the SDK's global state and its threads away from the tests.
    """
    stage = Stage(sdk_url, base_url, Path(scratch))
    stage.login()
    for line in sys.stdin:
        scenario = line.strip()
        try:
            DRIVERS[scenario](stage)
        except Exception:  # noqa: BLE001 - reported to the test, whatever it is
            answer = {"failed": traceback.format_exc()}
        else:
            answer = {"run": stage.runs.get(scenario)}
        sys.__stdout__.write(f"{MARK}{json.dumps(answer)}\n")  # pyright: ignore[reportOptionalMemberAccess]
        sys.__stdout__.flush()  # pyright: ignore[reportOptionalMemberAccess]


if __name__ == "__main__":
    main(*sys.argv[1:])
