"""A small implementation of two real services, which does what the name of the run says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from flyteidl2.common import identifier_pb2
from flyteidl2.workflow import internal_run_service_pb2, run_service_pb2

from flyte_binary.domain.errors import NotFound
from flyte_binary.rpc.identity import RequestContext


class Probe:
    """RunService; `watch_runs` sends one message and then has nothing to tell until `more` is set."""

    def __init__(self) -> None:
        self.requests: list[run_service_pb2.GetRunDetailsRequest] = []
        self.contexts: list[RequestContext] = []
        self.entered = asyncio.Event()
        self.proceed = asyncio.Event()
        self.more = asyncio.Event()
        self.watching = 0
        self.closed = asyncio.Event()

    async def get_run_details(
        self, request: run_service_pb2.GetRunDetailsRequest, context: RequestContext
    ) -> run_service_pb2.GetRunDetailsResponse:
        self.requests.append(request)
        self.contexts.append(context)
        match request.run_id.name:
            case "missing":
                raise NotFound("run p/d/missing does not exist")
            case "bug":
                raise RuntimeError("a secret detail")
            case "foreign-cancel":
                raise asyncio.CancelledError
            case "slow":
                self.entered.set()
                await self.proceed.wait()
            case "large":
                return details("x" * 100_000)
        return details(request.run_id.name)

    async def create_run(
        self, request: run_service_pb2.CreateRunRequest, context: RequestContext
    ) -> run_service_pb2.CreateRunResponse:
        context.response_headers.append(("x-probe", "created"))
        return run_service_pb2.CreateRunResponse()

    async def watch_runs(
        self, request: run_service_pb2.WatchRunsRequest, context: RequestContext
    ) -> AsyncIterator[run_service_pb2.WatchRunsResponse]:
        self.watching += 1
        self.contexts.append(context)
        self.entered.set()
        try:
            match request.project_id.name:
                case "silent":
                    await self.more.wait()
                case "bug":
                    yield run_service_pb2.WatchRunsResponse()
                    raise RuntimeError("a secret detail")
                case "large":
                    while True:
                        yield run_service_pb2.WatchRunsResponse(runs=[run("x" * 500_000)])
            yield run_service_pb2.WatchRunsResponse(runs=[run("first")])
            await self.more.wait()
            yield run_service_pb2.WatchRunsResponse(runs=[run("second")])
        finally:
            self.watching -= 1
            self.closed.set()


class InternalProbe:
    """InternalRunService's streams: one answer for each request."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.closed = asyncio.Event()

    async def record_action_stream(
        self, requests: AsyncIterator[internal_run_service_pb2.RecordActionStreamRequest], context: RequestContext
    ) -> AsyncIterator[internal_run_service_pb2.RecordActionStreamResponse]:
        try:
            async for _ in requests:
                yield internal_run_service_pb2.RecordActionStreamResponse()
                self.entered.set()
        finally:
            self.closed.set()


def details(name: str) -> run_service_pb2.GetRunDetailsResponse:
    response = run_service_pb2.GetRunDetailsResponse()
    response.details.action.id.run.name = name
    return response


def run(name: str):
    message = run_service_pb2.WatchRunsResponse().runs.add()
    message.action.id.run.name = name
    return message


def request_for(name: str) -> run_service_pb2.GetRunDetailsRequest:
    return run_service_pb2.GetRunDetailsRequest(run_id=identifier_pb2.RunIdentifier(project="p", domain="d", name=name))


def watch_for(name: str) -> run_service_pb2.WatchRunsRequest:
    return run_service_pb2.WatchRunsRequest(
        project_id=identifier_pb2.ProjectIdentifier(name=name, domain="d", organization="o")
    )
