"""A change of state → each of 100 watchers, on WatchActions of one run and on WatchRuns of a project.

The changes are reports of an executor outside the server (InternalRunService), whose attempt number tells which change
a message shows. Latency counts from the moment that the report is sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from flyteidl2.common import identifier_pb2, phase_pb2
from flyteidl2.workflow import internal_run_service_pb2 as internal_pb2
from flyteidl2.workflow import run_definition_pb2, run_service_pb2
from google.protobuf.message import Message

from benchmarks.client import CallFailed, Connection, Stream
from benchmarks.load import quantile
from benchmarks.report import Row
from benchmarks.requests import DOMAIN, PROJECT, child_id, create_run, task_spec
from benchmarks.server_process import PAUSED, ServerProcess, running_server

WATCHERS = 100
ACTIONS = 20
CHANGES_EACH = 10
PER_SECOND = 20

_RECORD = "flyteidl2.workflow.InternalRunService/RecordAction"
_UPDATE = "flyteidl2.workflow.InternalRunService/UpdateActionStatus"

Decode = Callable[[bytes], Iterable[run_definition_pb2.Action]]


async def measure(folder: Path) -> list[Row]:
    async with running_server(folder, PAUSED) as server:
        of_actions = await _watch_actions(server)
        of_runs = await _watch_runs(server)
    return [_row("WatchActions of one run", of_actions), _row("WatchRuns of a project", of_runs)]


@dataclass(slots=True)
class _Seen:
    latencies: list[float] = field(default_factory=list[float])
    last_states_missing: int = 0
    backwards: int = 0
    """Messages that show an earlier state of an action than one before on the same stream."""


def _row(name: str, seen: _Seen) -> Row:
    p50, p99 = quantile(seen.latencies, 0.5), quantile(seen.latencies, 0.99)
    complete = seen.last_states_missing == 0 and seen.backwards == 0
    told = (
        "every last state seen"
        if complete
        else (f"{seen.last_states_missing} last states missing, {seen.backwards} steps back")
    )
    return Row(
        what=f"state change → watcher, {WATCHERS} watchers, {ACTIONS * CHANGES_EACH} changes at {PER_SECOND}/s: {name}",
        wanted="p50 < 20 ms, p99 < 200 ms; every last state seen",
        measured=f"p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms, {len(seen.latencies):,} messages; {told}",
        met=p50 < 0.02 and p99 < 0.2 and complete,
        compared="reference p50 136 to 161 ms, p99 638 ms; last states of 1 to 2 of 1,000 actions never came",
    )


async def _watch_actions(server: ServerProcess) -> _Seen:
    run = await create_run(server.port, server.store)
    reporter = await Connection(server.port).open()
    targets = [child_id(run, f"c{number}") for number in range(ACTIONS)]
    for target in targets:
        task = run_definition_pb2.TaskAction(spec=task_spec())
        record = internal_pb2.RecordActionRequest(action_id=target, parent="a0", task=task)
        answer = await reporter.call(_RECORD, record, internal_pb2.RecordActionResponse)
        _require_ok(answer.status.code, answer.status.message)

    def decode(message: bytes) -> Iterable[run_definition_pb2.Action]:
        response = run_service_pb2.WatchActionsResponse.FromString(message)
        return (enriched.action for enriched in response.enriched_actions)

    request = run_service_pb2.WatchActionsRequest(run_id=run)
    return await _observe(server, "WatchActions", request, decode, targets, reporter)


async def _watch_runs(server: ServerProcess) -> _Seen:
    targets = [child_id(await create_run(server.port, server.store), "a0") for _ in range(ACTIONS)]
    reporter = await Connection(server.port).open()

    def decode(message: bytes) -> Iterable[run_definition_pb2.Action]:
        return (run.action for run in run_service_pb2.WatchRunsResponse.FromString(message).runs)

    project = identifier_pb2.ProjectIdentifier(name=PROJECT, domain=DOMAIN)
    request = run_service_pb2.WatchRunsRequest(project_id=project)
    return await _observe(server, "WatchRuns", request, decode, targets, reporter)


async def _observe(
    server: ServerProcess,
    method: str,
    request: Message,
    decode: Decode,
    targets: list[identifier_pb2.ActionIdentifier],
    reporter: Connection,
) -> _Seen:
    inboxes: list[list[tuple[float, bytes]]] = [[] for _ in range(WATCHERS)]
    streams = [
        await Stream(server.port, lambda at, message, inbox=inbox: inbox.append((at, message))).open(
            f"flyteidl2.workflow.RunService/{method}", request
        )
        for inbox in inboxes
    ]
    await _until(lambda: all(inboxes))
    await asyncio.sleep(0.5)
    sent: dict[tuple[str, str, int], float] = {}
    began = time.perf_counter()
    for change in range(ACTIONS * CHANGES_EACH):
        await asyncio.sleep(max(0.0, began + change / PER_SECOND - time.perf_counter()))
        target, number = targets[change % ACTIONS], 2 + change // ACTIONS
        last = number == CHANGES_EACH + 1
        report = _report(target, number, last=last)
        sent[(target.run.name, target.name, number)] = time.perf_counter()
        answer = await reporter.call(_UPDATE, report, internal_pb2.UpdateActionStatusResponse)
        _require_ok(answer.status.code, answer.status.message)
    await asyncio.sleep(1.0)
    for stream in streams:
        stream.close()
    return _evaluate(inboxes, decode, sent, targets)


def _report(
    target: identifier_pb2.ActionIdentifier, attempt: int, *, last: bool
) -> internal_pb2.UpdateActionStatusRequest:
    phase = phase_pb2.ACTION_PHASE_SUCCEEDED if last else phase_pb2.ACTION_PHASE_RUNNING
    status = run_definition_pb2.ActionStatus(phase=phase, attempts=attempt)
    return internal_pb2.UpdateActionStatusRequest(action_id=target, status=status)


def _evaluate(
    inboxes: list[list[tuple[float, bytes]]],
    decode: Decode,
    sent: dict[tuple[str, str, int], float],
    targets: list[identifier_pb2.ActionIdentifier],
) -> _Seen:
    seen = _Seen()
    for inbox in inboxes:
        newest: dict[tuple[str, str], int] = {}
        ended: set[tuple[str, str]] = set()
        for at, message in inbox:
            for action in decode(message):
                key, number = (action.id.run.name, action.id.name), action.status.attempts
                began = sent.get((*key, number))
                if began is not None and newest.get(key, 0) < number:
                    seen.latencies.append(at - began)
                seen.backwards += number < newest.get(key, 0)
                newest[key] = max(number, newest.get(key, 0))
                if action.status.phase == phase_pb2.ACTION_PHASE_SUCCEEDED:
                    ended.add(key)
        seen.last_states_missing += sum((one.run.name, one.name) not in ended for one in targets)
    return seen


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.02)


def _require_ok(code: int, message: str) -> None:
    if code:
        raise CallFailed(f"{code}: {message}")
