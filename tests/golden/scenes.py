"""Plays the conversations that need a running task: each function does with the SDK what was done when it was recorded.

A driver gets the stage and leaves the name of the run that the conversation is about in `stage.runs`. It drives and
does not judge: outcomes that the SDK reports as exceptions are part of the conversation.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import flyte
import flyte.errors
import httpx
from connectrpc.errors import ConnectError
from flyte.remote import Action, ActionDetails, Condition, Run, RunDetails, Secret, Task, Trigger

from tests.golden.streams import Streams

PROGRAMS = Path(__file__).parent / "programs"
PATIENCE_SECONDS = 30
REASON = "golden reason"

Driver = Callable[["Stage"], None]


@dataclass
class Stage:
    """What a driver has at hand."""

    sdk_url: str
    """The recorder's address for the driver's own calls."""
    base_url: str
    """The server's address, for questions that are not part of the conversation."""
    scratch: Path
    runs: dict[str, str] = field(default_factory=dict)
    """Scenario → name of the run that it made."""

    def login(self) -> None:
        """Points the SDK of this process at the recorder."""
        flyte.init(
            endpoint=self.sdk_url.removeprefix("http://"),
            insecure=True,
            project="flytesnacks",
            domain="development",
            root_dir=PROGRAMS,
        )


def program(name: str) -> ModuleType:
    """A module of `programs/`, under the name that a task's command line will use."""
    if str(PROGRAMS) not in sys.path:
        sys.path.insert(0, str(PROGRAMS))
    return importlib.import_module(name)


def _finished(stage: Stage, scenario: str, task: Any, **inputs: Any) -> Run:  # a task template of any signature
    run = flyte.run(task, **inputs)
    stage.runs[scenario] = run.name
    run.wait(quiet=True)
    return run


def with_outputs(scenario: str, module: str, task: str, **inputs: Any) -> Driver:  # inputs of any task
    def drive(stage: Stage) -> None:
        _outputs(_finished(stage, scenario, getattr(program(module), task), **inputs))

    return drive


def with_failure(scenario: str, module: str, task: str, **inputs: Any) -> Driver:  # inputs of any task
    def drive(stage: Stage) -> None:
        run = _finished(stage, scenario, getattr(program(module), task), **inputs)
        with contextlib.suppress(flyte.errors.BaseRuntimeError):
            run.raise_for_status()

    return drive


def _outputs(run: Run) -> None:
    """Asks for the outputs; of an unsuccessful run the SDK complains about what it gets, or does not ask at all."""
    try:
        run.outputs()
    except (RuntimeError, flyte.errors.BaseRuntimeError, ConnectError, ValueError):
        return


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {PATIENCE_SECONDS} s: {condition}")
        time.sleep(0.1)


def _running_child(run_name: str) -> str:
    found: list[str] = []

    def looked() -> bool:
        actions = list(Action.listall(for_run_name=run_name))
        found[:] = [action.name for action in actions if action.name != "a0" and action.phase.value == "running"]
        return bool(found)

    _until(looked)
    return found[0]


def fill_cache(_stage: Stage) -> None:
    flyte.run(program("trig").longrun, secs=1).wait(quiet=True)


def _started(stage: Stage, run: Run) -> Run:
    """The run, when it is running or has ended."""
    action_id = {"run": {"project": "flytesnacks", "domain": "development", "name": run.name}, "name": "a0"}
    url = f"{stage.base_url}/flyteidl2.workflow.RunService/GetActionDetails"
    early = {"ACTION_PHASE_QUEUED", "ACTION_PHASE_WAITING_FOR_RESOURCES", "ACTION_PHASE_INITIALIZING"}

    def looked() -> bool:
        answer = httpx.post(url, json={"actionId": action_id}).raise_for_status()
        return answer.json()["details"]["status"]["phase"] not in early

    _until(looked)
    return run


def cache_hit_follow_logs(stage: Stage) -> None:
    run = flyte.run(program("trig").longrun, secs=1)
    stage.runs["cache-hit-follow-logs"] = run.name
    _read_logs(_started(stage, run))


def _read_logs(run: Run | Action) -> None:
    with contextlib.suppress(flyte.errors.LogsNotYetAvailableError, ConnectError):
        list(run.get_logs())


def condition_signal(stage: Stage) -> None:
    run = flyte.run(program("gcond").four)
    stage.runs["condition-signal"] = run.name
    signalled: set[str] = set()
    waiting: list[Condition] = []

    def asked() -> bool:
        conditions = list(Condition.listall(run_name=run.name))
        waiting[:] = [one for one in conditions if one.action_name not in signalled and one.phase.endswith("PAUSED")]
        return bool(waiting)

    for answers in ([True, True], [7, 7], [1.5, 1.5], ['"wrong type"', "hello", "hello"]):
        _until(asked)
        signalled.add(waiting[0].action_name)
        for answer in answers:
            ActionDetails.get(run_name=run.name, name=waiting[0].action_name)
            with contextlib.suppress(ConnectError):
                waiting[0].signal(answer)
    run.wait(quiet=True)
    _outputs(run)


def abort_action(stage: Stage) -> None:
    run = flyte.run(program("canc").main2)
    stage.runs["abort-action"] = run.name
    child = _running_child(run.name)
    Action.get(run_name=run.name, name=child).abort(REASON)
    run.wait(quiet=True)
    Action.get(run_name=run.name, name=child).abort(REASON)
    list(Action.listall(for_run_name=run.name))
    RunDetails.get(run.name)
    _outputs(run)


def abort_run(stage: Stage) -> None:
    run = flyte.run(program("canc").main2)
    stage.runs["abort-run"] = run.name
    _running_child(run.name)
    _abort_twice(run)


def abort_run_early(stage: Stage) -> None:
    run = flyte.run(program("trig").longrun, secs=60)
    stage.runs["abort-run-early"] = run.name
    _abort_twice(_started(stage, run))


def _abort_twice(run: Run) -> None:
    Run.get(run.name).abort(REASON)
    run.wait(quiet=True)
    list(Action.listall(for_run_name=run.name))
    Run.get(run.name).abort(REASON)
    RunDetails.get(run.name)
    _outputs(run)


def deploy(_stage: Stage) -> None:
    for _ in range(2):
        flyte.deploy(program("hello").env, version="v1")


def run_deployed(stage: Stage) -> None:
    for name in ("dep", "world"):
        task = Task.get("hello_env.simple", auto_version="latest")
        run = flyte.run(task, name=name)
        stage.runs["run-deployed"] = run.name
        _read_logs(_started(stage, run))


def deploy_triggers(_stage: Stage) -> None:
    flyte.deploy(program("trig").env, version="v2")


def redeploy_triggers(_stage: Stage) -> None:
    flyte.deploy(program("trig").env, version="v3")
    Trigger.update("rate", "trigenv.tt", active=False)


def recreate_secret(stage: Stage) -> None:
    """Of the organization, as it stood when the errors were recorded."""
    flyte.init(endpoint=stage.sdk_url.removeprefix("http://"), insecure=True, project="", domain="", root_dir=PROGRAMS)
    try:
        Secret.create("MYSECRET", "golden-value")
    finally:
        stage.login()


def fire_hourly(stage: Stage) -> None:
    """What the scheduler does at the full hour, for which nobody waits here."""
    project = {"project": "flytesnacks", "domain": "development"}
    request = {
        "projectId": {"name": "flytesnacks", "domain": "development"},
        "triggerName": {**project, "name": "hourly", "taskName": "trigenv.tt"},
        "source": "RUN_SOURCE_SCHEDULE_TRIGGER",
        "runStartTime": "2026-11-30T23:00:00Z",
    }
    answer = httpx.post(f"{stage.base_url}/flyteidl2.workflow.RunService/CreateRun", json=request).raise_for_status()
    run = Run.get(answer.json()["run"]["action"]["id"]["run"]["name"])
    stage.runs["fire-hourly"] = run.name
    run.wait(quiet=True)


def look_at_everything(stage: Stage) -> None:
    run = _finished(stage, "get-run-action-logs-io", program("shapes").many_out, a=5, b="d")
    _outputs(run)
    list(Run.listall(limit=100))
    list(Action.listall(for_run_name=run.name))
    ActionDetails.get(run_name=run.name, name="a0")
    _read_logs(run)
    _read_logs(Action.get(run_name=run.name, name="a0"))
    RunDetails.get(run.name).outputs()
    with contextlib.suppress(ConnectError, RuntimeError):
        Run.get(run.name).download_code(dest=stage.scratch / "code")


def rerun(stage: Stage) -> None:
    source = stage.runs["get-run-action-logs-io"]
    again = flyte.rerun(source)
    stage.runs["rerun"] = again.name
    _read_logs(_started(stage, again))
    Run.get(source)
    changed = flyte.rerun(source, a=9)
    _read_logs(_started(stage, changed))
    flyte.rerun(source, recover=True)


def watch_like_a_console(stage: Stage) -> None:
    with Streams(stage.sdk_url) as streams:
        project = {"projectId": {"domain": "development", "name": "flytesnacks"}}
        streams.open("flyteidl2.workflow.RunService/WatchRuns", project)
        streams.open("flyteidl2.workflow.RunService/WatchGroups", project)
        run = flyte.with_runcontext(name=f"rgolden{time.time_ns() % 100_000}").run(program("fan").fan, n=3)
        stage.runs["ui-watch-streams"] = run.name
        run_id = {"project": "flytesnacks", "domain": "development", "name": run.name}
        running = [{"function": "VALUE_IN", "field": "PHASE", "values": ["4"]}]
        streams.open("flyteidl2.workflow.RunService/WatchActions", {"runId": run_id})
        streams.open("flyteidl2.workflow.RunService/WatchActions", {"runId": run_id, "filter": running})
        streams.open("flyteidl2.workflow.RunService/WatchRunDetails", {"runId": run_id})
        events = {"id": {"run": run_id, "name": "a0"}, "attempt": 1}
        streams.open("flyteidl2.workflow.RunService/WatchClusterEvents", events)
        run.wait(quiet=True)
        _outputs(run)
        list(Action.listall(for_run_name=run.name))
        streams.settle()
