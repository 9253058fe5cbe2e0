"""SIGTERM with 20 open watches: how long until the process is gone, and whether the streams were ended or cut."""

from __future__ import annotations

import asyncio
from pathlib import Path

from flyteidl2.actions import actions_service_pb2
from flyteidl2.common import identifier_pb2
from flyteidl2.workflow import run_service_pb2

from benchmarks.client import Stream
from benchmarks.report import Row
from benchmarks.requests import DOMAIN, PROJECT, WATCH_FOR_UPDATES, child_id, create_run
from benchmarks.server_process import PAUSED, running_server

ROUNDS = 3
_CLEAN = b"{}"


async def measure(folder: Path) -> list[Row]:
    took: list[float] = []
    cut = 0
    for _ in range(ROUNDS):
        seconds, streams = await _stop_with_open_watches(folder)
        took.append(seconds)
        cut += sum(stream.end != _CLEAN for stream in streams)
    told = "all streams ended" if cut == 0 else f"{cut} of {ROUNDS * 20} streams cut"
    return [
        Row(
            what=f"SIGTERM with 20 open watches, {ROUNDS} times",
            wanted="< 2 s, streams end cleanly",
            measured=f"{', '.join(f'{seconds:.2f}' for seconds in sorted(took))} s; {told}",
            met=max(took) < 2 and cut == 0,
            compared="reference 30.0 s, streams cut",
        )
    ]


async def _stop_with_open_watches(folder: Path) -> tuple[float, list[Stream]]:
    async with running_server(folder, PAUSED) as server:
        run = await create_run(server.port, server.store)
        parent = actions_service_pb2.WatchForUpdatesRequest(parent_action_id=child_id(run, "a0"))
        project = identifier_pb2.ProjectIdentifier(name=PROJECT, domain=DOMAIN)
        watches = [
            (WATCH_FOR_UPDATES, parent),
            ("flyteidl2.workflow.RunService/WatchRuns", run_service_pb2.WatchRunsRequest(project_id=project)),
            ("flyteidl2.workflow.RunService/WatchActions", run_service_pb2.WatchActionsRequest(run_id=run)),
            (
                "flyteidl2.workflow.RunService/WatchActionDetails",
                run_service_pb2.WatchActionDetailsRequest(action_id=child_id(run, "a0")),
            ),
        ]
        streams = [
            await Stream(server.port, lambda _at, _message: None).open(method, request)
            for method, request in watches
            for _ in range(5)
        ]
        await asyncio.sleep(0.5)
        server.terminate()
        seconds = await server.wait_for_exit()
        async with asyncio.timeout(1):
            await asyncio.gather(*(stream.closed.wait() for stream in streams))
        return seconds, streams
