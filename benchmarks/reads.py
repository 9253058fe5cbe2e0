"""Lists, details, the cache and uploads at 16 clients, on a long past, on both databases."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from flyteidl2.cacheservice import cacheservice_pb2
from flyteidl2.cacheservice.v2 import cacheservice_pb2 as cache_v2_pb2
from flyteidl2.dataproxy import dataproxy_service_pb2
from flyteidl2.task import task_service_pb2
from flyteidl2.workflow import run_service_pb2

from benchmarks.client import Connection
from benchmarks.load import Samples, closed_loop
from benchmarks.report import Row
from benchmarks.requests import DOMAIN, PROJECT, child_id, run_id, task_spec
from benchmarks.server_process import PAUSED, ServerProcess, running_server
from benchmarks.stored import LONG_RUN, Kind, fill, kinds

RUNS, ACTIONS, CLIENTS, SECONDS = 100_000, 50_000, 16, 3.0
_RUN_SERVICE = "flyteidl2.workflow.RunService"
_CACHE = "flyteidl2.cacheservice.v2.CacheService"

Call = Callable[[Connection, int], Awaitable[object]]


async def measure(folder: Path) -> list[Row]:
    rows: list[Row] = []
    with kinds() as databases:
        for kind in databases:
            place = folder / kind.name
            await fill(kind, place, runs=RUNS, actions=ACTIONS)
            async with running_server(place, {**PAUSED, **kind.settings}) as server:
                rows += [await _figure(server, kind, *figure) for figure in await _figures(server)]
    return rows


async def _figure(server: ServerProcess, kind: Kind, what: str, at_least: int, compared: str, call: Call) -> Row:
    await closed_loop(server.port, workers=CLIENTS, seconds=0.5, call=call)
    samples: Samples = await closed_loop(server.port, workers=CLIENTS, seconds=SECONDS, call=call)
    return Row(
        what=f"{what}, {CLIENTS} clients, {kind.name}",
        wanted=f"≥ {at_least:,}/s, p99 < 100 ms",
        measured=samples.describe(),
        met=samples.rate >= at_least and samples.quantile(0.99) < 0.1,
        compared=compared,
    )


async def _figures(server: ServerProcess) -> list[tuple[str, int, str, Call]]:
    runs = run_service_pb2.ListRunsRequest()
    runs.project_id.name, runs.project_id.domain = PROJECT, DOMAIN
    runs.request.limit = 100
    actions = run_service_pb2.ListActionsRequest(run_id=run_id(LONG_RUN))
    actions.request.limit = 100
    late_runs = run_service_pb2.ListRunsRequest.FromString(runs.SerializeToString())
    late_runs.request.token = await _late(server, "ListRuns", runs, run_service_pb2.ListRunsResponse, RUNS)
    late_actions = run_service_pb2.ListActionsRequest.FromString(actions.SerializeToString())
    late_actions.request.token = await _late(
        server, "ListActions", actions, run_service_pb2.ListActionsResponse, ACTIONS
    )
    details = run_service_pb2.GetRunDetailsRequest(run_id=run_id("r0000007"))
    action = run_service_pb2.GetActionDetailsRequest(action_id=child_id(run_id(LONG_RUN), "c0000007"))

    def fixed(method: str, request: object) -> Call:
        body = request.SerializeToString()  # pyright: ignore[reportAttributeAccessIssue]  # a message
        return lambda connection, _number: connection.send(method, body)

    list_runs, list_actions = f"{_RUN_SERVICE}/ListRuns", f"{_RUN_SERVICE}/ListActions"
    of_runs, of_actions = f"over {RUNS:,} runs", f"over {ACTIONS:,} actions of one run"
    return [
        (f"ListRuns (100) {of_runs}, first page", 300, "reference 247/s over 5,000 runs", fixed(list_runs, runs)),
        ("the same, last page", 300, "", fixed(list_runs, late_runs)),
        (f"ListActions (100) {of_actions}, first page", 300, "reference 159/s, 1 client", fixed(list_actions, actions)),
        ("the same, last page", 300, "reference 27/s", fixed(list_actions, late_actions)),
        ("GetRunDetails", 700, "reference 738/s", fixed(f"{_RUN_SERVICE}/GetRunDetails", details)),
        ("GetActionDetails", 1500, "reference 1,950/s", fixed(f"{_RUN_SERVICE}/GetActionDetails", action)),
        ("cache put", 1500, "reference 2,427/s", _put),
        ("cache get", 2500, "reference 5,967/s", _get),
        ("CreateUploadLocation", 1500, "reference 2,335/s", _upload),
        ("DeployTask", 1000, "reference 1,476/s", _deploy),
    ]


async def _late(server: ServerProcess, method: str, request: object, response: type, total: int) -> str:
    """The token of the last full page, found by offsets, which the server takes as well."""
    connection = await Connection(server.port).open()
    asked = type(request).FromString(request.SerializeToString())  # pyright: ignore
    asked.request.token = str(total - 200)
    answer = await connection.call(f"{_RUN_SERVICE}/{method}", asked, response)
    connection.close()
    return answer.token


def _identifier() -> cache_v2_pb2.Identifier:
    return cache_v2_pb2.Identifier(org="", project=PROJECT, domain=DOMAIN)


async def _put(connection: Connection, number: int) -> None:
    base = cacheservice_pb2.PutCacheRequest(key=f"key-{number % 5000}")
    base.output.output_uri = f"/store/outputs/{number}"
    base.overwrite.overwrite = True
    request = cache_v2_pb2.PutCacheRequest(base_request=base, identifier=_identifier())
    await connection.send(f"{_CACHE}/Put", request.SerializeToString())


async def _get(connection: Connection, number: int) -> None:
    base = cacheservice_pb2.GetCacheRequest(key=f"key-{number % 500}")
    request = cache_v2_pb2.GetCacheRequest(base_request=base, identifier=_identifier())
    await connection.send(f"{_CACHE}/Get", request.SerializeToString())


async def _upload(connection: Connection, number: int) -> None:
    request = dataproxy_service_pb2.CreateUploadLocationRequest(
        project=PROJECT,
        domain=DOMAIN,
        filename="fast.tar.gz",
        content_md5=hashlib.md5(str(number).encode(), usedforsecurity=False).digest(),
    )
    await connection.send("flyteidl2.dataproxy.DataProxyService/CreateUploadLocation", request.SerializeToString())


async def _deploy(connection: Connection, number: int) -> None:
    request = task_service_pb2.DeployTaskRequest(spec=task_spec())
    request.task_id.project, request.task_id.domain = PROJECT, DOMAIN
    request.task_id.name, request.task_id.version = "bench.leaf", f"v{number}"
    await connection.send("flyteidl2.task.TaskService/DeployTask", request.SerializeToString())
