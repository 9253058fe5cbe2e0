"""The SDK at work in a process of its own: does with the public API of `flyte` what it is asked to.

Requests and answers are lines of JSON; each request runs in a task of its own, so that one may wait while others go
on. `tests/sdk/sdk.py` is the other end. The driver drives and does not judge.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import json
import os
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any

import flyte
import flyte.errors
from flyte.io import DataFrame, Dir, File
from flyte.remote import Action, ActionDetails, Condition, Run, Task, Trigger

PROGRAMS = Path(__file__).parent / "programs"

Values = dict[str, Any]  # inputs and answers: whatever JSON can hold


async def start(task: str, inputs: Values, options: Values | None = None) -> str:
    """The name of a new run of `module.task` in `programs/`. `options` are those of `with_runcontext`."""
    run = await flyte.with_runcontext(**(options or {})).run.aio(_entity(task), **await _native(inputs))
    return run.name


async def start_deployed(task: str, inputs: Values, version: str | None = None) -> str:
    deployed = Task.get(task, version=version) if version else Task.get(task, auto_version="latest")
    return (await flyte.run.aio(deployed, **await _native(inputs))).name


async def rerun(run: str, inputs: Values, options: Values | None = None, context: Values | None = None) -> str:
    """`options` are those of `rerun`, `context` those of `with_runcontext`."""
    again = await flyte.with_runcontext(**(context or {})).rerun.aio(run, **(options or {}), **await _native(inputs))
    return again.name


async def wait(run: str, until: str = "terminal") -> None:
    await (await Run.get.aio(run)).wait.aio(quiet=True, wait_for=until)


async def finish(run: str) -> Values:
    """Waits for the run and tells what became of it; `raised` is what the SDK makes of a failure."""
    found = await Run.get.aio(run)
    await found.wait.aio(quiet=True)
    answer = await look(run)
    try:
        await found.raise_for_status.aio()
    except flyte.errors.BaseRuntimeError as error:
        answer["raised"] = type(error).__name__
    return answer


async def look(run: str, action: str = "a0") -> Values:
    details = await ActionDetails.get.aio(run_name=run, name=action)
    succeeded = details.phase.value in ("succeeded", "recovered")
    outputs = await details.outputs() if succeeded and details.task_name else ()
    return {
        "details": details.to_dict(),
        "inputs": {name: await _plain(value) for name, value in (await _inputs(details)).items()},
        "outputs": [await _plain(value) for value in outputs],
    }


async def actions(run: str) -> list[Values]:
    return [action.to_dict() async for action in Action.listall.aio(for_run_name=run)]


async def runs(**filters: Any) -> list[str]:
    return [run.name async for run in Run.listall.aio(**filters)]


async def signal(run: str, condition: str, value: bool | int | float | str) -> None:
    found = await Condition.get.aio(condition, run_name=run)
    assert found is not None, f"no condition {condition} in {run}"
    await found.signal.aio(value)


async def abort_run(run: str, reason: str) -> None:
    await (await Run.get.aio(run)).abort.aio(reason)


async def abort_action(run: str, action: str, reason: str) -> None:
    await (await Action.get.aio(run_name=run, name=action)).abort.aio(reason)


async def logs(run: str, action: str = "a0", attempt: int | None = None, show_ts: bool = False) -> list[str]:
    """All lines until the server ends the stream."""
    found = await Action.get.aio(run_name=run, name=action)
    return [line async for line in found.get_logs.aio(attempt=attempt, show_ts=show_ts)]


async def tail(run: str, until: str, release: str) -> Values:
    """Follows the log of the root until a line holds `until`; then makes the file `release` and follows to the end."""
    found = await Action.get.aio(run_name=run, name="a0")
    before: list[str] = []
    after: list[str] = []
    released = False
    async for line in found.get_logs.aio():
        (after if released else before).append(line)
        if until in line:
            await asyncio.to_thread(Path(release).touch)
            released = True
    return {"before": before, "after": after}


async def report(run: str) -> str:
    return await (await Run.get.aio(run)).get_report.aio()


async def download_code(run: str, dest: str) -> list[str]:
    folder = await (await Run.get.aio(run)).download_code.aio(dest=dest)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.py"))


async def deploy(environment: str, version: str) -> list[str]:
    """Names of the tasks that are deployed, after deploying `module.environment`."""
    await flyte.deploy.aio(_entity(environment), version=version)
    return [task.name async for task in Task.listall.aio()]


async def fire(trigger: str, task: str, inputs: Values) -> str:
    """The name of a new run, made on demand as the deployed trigger."""
    found = await Trigger.get.aio(name=trigger, task_name=task)
    return (await flyte.run.aio(found, **await _native(inputs))).name


async def triggers(task: str) -> dict[str, Values]:
    """Those of a deployed task, by their names."""
    return {trigger.name: trigger.to_dict() async for trigger in Trigger.listall.aio(task_name=task)}


async def delete_triggers(task: str) -> None:
    for name in await triggers(task):
        await Trigger.delete.aio(name=name, task_name=task)


VERBS: dict[str, Callable[..., Awaitable[Any]]] = {
    verb.__name__: verb
    for verb in (
        start,
        start_deployed,
        rerun,
        wait,
        finish,
        look,
        actions,
        runs,
        signal,
        abort_run,
        abort_action,
        logs,
        tail,
        report,
        download_code,
        deploy,
        fire,
        triggers,
        delete_triggers,
    )
}


def _entity(name: str) -> Any:  # a task or an environment of any kind
    """Of the module's name as a task's command line will use it."""
    module, _, attribute = name.partition(".")
    return getattr(importlib.import_module(module), attribute)


async def _native(inputs: Values) -> Values:
    return {name: await _native_value(value) for name, value in inputs.items()}


async def _native_value(value: Any) -> Any:
    """`{"$file": path}`, `{"$dir": path}` and `{"$csv": text}` stand for what JSON cannot hold."""
    match value:
        case {"$file": path}:
            return await File.from_local(path)
        case {"$dir": path}:
            return await Dir.from_local(path)
        case {"$csv": text}:
            import pandas as pd  # noqa: PLC0415 - takes a second, and few tests need it

            return pd.read_csv(io.StringIO(text))
        case _:
            return value


async def _plain(value: Any) -> Any:
    match value:
        case File():
            return {"$file": value.path}
        case Dir():
            return {"$dir": value.path}
        case DataFrame():
            return {"$parquet": value.uri}
        case tuple() | list():
            return [await _plain(item) for item in value]
        case _:
            return value


async def _inputs(details: ActionDetails) -> Values:
    return dict(await details.inputs() or {}) if details.task_name else {}


async def serve(config: str, answers: IO[str]) -> None:
    await flyte.init_from_config.aio(config, root_dir=PROGRAMS)
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, "")

    reading = asyncio.create_task(asyncio.to_thread(read), name="requests")
    async with asyncio.TaskGroup() as group:
        while line := await lines.get():
            group.create_task(_answer(json.loads(line), answers))
    await reading


async def _answer(request: Values, answers: IO[str]) -> None:
    began = time.monotonic()
    try:
        answer = {"answer": await VERBS[request["verb"]](**request["arguments"])}
    except Exception as error:  # noqa: BLE001 - reported to the test, whatever it is
        code = getattr(getattr(error, "code", None), "value", None) or getattr(error, "code", None)
        kind = {"type": type(error).__name__, "code": code, "message": str(error)}
        answer = {"failed": kind, "traceback": traceback.format_exc()}
    answer |= {"id": request["id"], "seconds": time.monotonic() - began}
    answers.write(json.dumps(answer, default=str) + "\n")
    answers.flush()


def main(config: str) -> None:
    """Standard output is for answers only; what the SDK prints goes to standard error."""
    sys.path.insert(0, str(PROGRAMS))
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(config, answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
