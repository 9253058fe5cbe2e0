"""RunService: each method hands its request to the use case that answers it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing

from flyteidl2.workflow import run_service_pb2 as pb

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.domain.errors import Unimplemented
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.identity import RequestContext
from flyte_binary.runs.create import RunCreator
from flyte_binary.runs.decisions import Aborter, Decisions, Signaller
from flyte_binary.runs.lists import RunLists
from flyte_binary.runs.reads import RunReads
from flyte_binary.runs.watches.actions import ActionsWatch
from flyte_binary.runs.watches.cluster_events import ClusterEventsWatch
from flyte_binary.runs.watches.details import DetailsWatch
from flyte_binary.runs.watches.groups import GroupsWatch
from flyte_binary.runs.watches.runs import RunsWatch
from flyte_binary.storage.store import ObjectStore


class RunService:
    def __init__(
        self,
        *,
        database: Database,
        hub: Hub,
        store: ObjectStore,
        clock: Clock,
        domains: Collection[str],
        aborter: Aborter,
        signaller: Signaller,
    ) -> None:
        """`domains` are the ids of those that every project has."""
        self._creator = RunCreator(database, store, clock, domains)
        self._decisions = Decisions(aborter, signaller)
        self._reads = RunReads(database)
        self._lists = RunLists(database)
        self._details = DetailsWatch(database, hub)
        self._runs = RunsWatch(database, hub)
        self._actions = ActionsWatch(database, hub)
        self._groups = GroupsWatch(database, hub)
        self._cluster_events = ClusterEventsWatch(database, hub)

    async def create_run(self, request: pb.CreateRunRequest, context: RequestContext) -> pb.CreateRunResponse:
        return await self._creator.create(request, context.caller)

    async def abort_run(self, request: pb.AbortRunRequest, context: RequestContext) -> pb.AbortRunResponse:
        await self._decisions.abort_run(request, context.caller)
        return pb.AbortRunResponse()

    async def abort_action(self, request: pb.AbortActionRequest, context: RequestContext) -> pb.AbortActionResponse:
        await self._decisions.abort_action(request, context.caller)
        return pb.AbortActionResponse()

    async def signal_event(self, request: pb.SignalEventRequest, context: RequestContext) -> pb.SignalEventResponse:
        await self._decisions.signal(request, context.caller)
        return pb.SignalEventResponse()

    async def get_run_details(
        self, request: pb.GetRunDetailsRequest, context: RequestContext
    ) -> pb.GetRunDetailsResponse:
        return await self._reads.run_details(request)

    async def get_action_details(
        self, request: pb.GetActionDetailsRequest, context: RequestContext
    ) -> pb.GetActionDetailsResponse:
        return await self._reads.action_details(request)

    async def get_action_data(
        self, request: pb.GetActionDataRequest, context: RequestContext
    ) -> pb.GetActionDataResponse:
        raise Unimplemented("RunService.GetActionData is deprecated; use DataProxyService.GetActionData instead")

    async def get_action_data_uris(
        self, request: pb.GetActionDataURIsRequest, context: RequestContext
    ) -> pb.GetActionDataURIsResponse:
        return await self._reads.data_uris(request)

    async def get_action_log_context(
        self, request: pb.GetActionLogContextRequest, context: RequestContext
    ) -> pb.GetActionLogContextResponse:
        return await self._reads.log_context(request)

    async def list_runs(self, request: pb.ListRunsRequest, context: RequestContext) -> pb.ListRunsResponse:
        return await self._lists.runs(request)

    async def list_actions(self, request: pb.ListActionsRequest, context: RequestContext) -> pb.ListActionsResponse:
        return await self._lists.actions(request)

    async def watch_action_details(
        self, request: pb.WatchActionDetailsRequest, context: RequestContext
    ) -> AsyncGenerator[pb.WatchActionDetailsResponse, None]:
        async with aclosing(self._details.action(request)) as responses:
            async for response in responses:
                yield response

    async def watch_run_details(
        self, request: pb.WatchRunDetailsRequest, context: RequestContext
    ) -> AsyncGenerator[pb.WatchRunDetailsResponse, None]:
        async with aclosing(self._details.run(request)) as responses:
            async for response in responses:
                yield response

    async def watch_runs(
        self, request: pb.WatchRunsRequest, context: RequestContext
    ) -> AsyncGenerator[pb.WatchRunsResponse, None]:
        async with aclosing(self._runs.watch(request)) as responses:
            async for response in responses:
                yield response

    async def watch_actions(
        self, request: pb.WatchActionsRequest, context: RequestContext
    ) -> AsyncGenerator[pb.WatchActionsResponse, None]:
        async with aclosing(self._actions.watch(request)) as responses:
            async for response in responses:
                yield response

    async def watch_groups(
        self, request: pb.WatchGroupsRequest, context: RequestContext
    ) -> AsyncGenerator[pb.WatchGroupsResponse, None]:
        async with aclosing(self._groups.watch(request)) as responses:
            async for response in responses:
                yield response

    async def watch_cluster_events(
        self, request: pb.WatchClusterEventsRequest, context: RequestContext
    ) -> AsyncGenerator[pb.WatchClusterEventsResponse, None]:
        async with aclosing(self._cluster_events.watch(request)) as responses:
            async for response in responses:
                yield response
