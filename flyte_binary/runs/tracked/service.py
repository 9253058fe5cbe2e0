"""TrackedRunService: a client executes the run, and this server keeps and shows what it reports.

The reads and watches are those of RunService, for tracked runs only; RunService shows tracked runs among all others.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing

from flyteidl2.common import list_pb2
from flyteidl2.workflow import run_definition_pb2
from flyteidl2.workflow import run_service_pb2 as runs_pb
from flyteidl2.workflow import tracked_run_service_pb2 as pb
from google.rpc import code_pb2, status_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import FlyteError, InvalidArgument, NotFound
from flyte_binary.domain.ids import RunId
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.identity import RequestContext
from flyte_binary.runs.decisions import Aborter, Decisions, Signaller
from flyte_binary.runs.lists import RunLists
from flyte_binary.runs.reads import RunReads
from flyte_binary.runs.requests import action_id_from, run_id_from
from flyte_binary.runs.tracked.apply import apply
from flyte_binary.runs.tracked.create import TrackedRunCreator
from flyte_binary.runs.tracked.reports import Report, report_from
from flyte_binary.runs.watches.actions import ActionsWatch
from flyte_binary.runs.watches.details import DetailsWatch
from flyte_binary.runs.watches.runs import RunsWatch
from flyte_binary.storage.store import ObjectStore

TRACKED = run_definition_pb2.RUN_SOURCE_TRACKED


class TrackedRunService:
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
        uploads: str,
    ) -> None:
        """`domains` are the ids of those that every project has, `uploads` the folder that clients upload to."""
        self._database = database
        self._store = store
        self._clock = clock
        self._uploads = uploads
        self._creator = TrackedRunCreator(database, store, clock, domains)
        self._decisions = Decisions(aborter, signaller)
        self._reads = RunReads(database)
        self._lists = RunLists(database)
        self._details = DetailsWatch(database, hub)
        self._runs = RunsWatch(database, hub)
        self._actions = ActionsWatch(database, hub)

    async def create_run(
        self, request: pb.CreateTrackedRunRequest, context: RequestContext
    ) -> runs_pb.CreateRunResponse:
        return await self._creator.create(request, context.caller)

    async def report_actions(
        self, request: pb.ReportTrackedActionsRequest, context: RequestContext
    ) -> pb.ReportTrackedActionsResponse:
        """One status for each update, in their order; one that is refused keeps none of the others back."""
        run = run_id_from(request)
        if not request.updates:
            raise InvalidArgument("updates: at least one is required")
        checked = [self._checked(update, run, place) for place, update in enumerate(request.updates)]
        now = self._clock.now()

        def operation(tx: Transaction) -> list[status_pb2.Status]:
            root = tx.actions.lock(run.root())
            if root is None or root.run_source != TRACKED:
                raise _not_tracked(run)
            return [_taken(tx, report, self._uploads, now) for report in checked]

        return pb.ReportTrackedActionsResponse(statuses=await self._database.write(operation, run=run))

    def _checked(self, update: pb.TrackedActionUpdate, run: RunId, place: int) -> Report | FlyteError:
        try:
            return report_from(update, run, f"updates[{place}]", self._store)
        except FlyteError as error:
            return error

    async def get_run_details(
        self, request: runs_pb.GetRunDetailsRequest, context: RequestContext
    ) -> runs_pb.GetRunDetailsResponse:
        await self._require(run_id_from(request))
        return await self._reads.run_details(request)

    async def get_action_details(
        self, request: runs_pb.GetActionDetailsRequest, context: RequestContext
    ) -> runs_pb.GetActionDetailsResponse:
        await self._require(action_id_from(request).run_id)
        return await self._reads.action_details(request)

    async def list_runs(self, request: runs_pb.ListRunsRequest, context: RequestContext) -> runs_pb.ListRunsResponse:
        narrowed = runs_pb.ListRunsRequest()
        narrowed.CopyFrom(request)
        narrowed.request.filters.add(function=list_pb2.Filter.EQUAL, field="run_source", values=[str(int(TRACKED))])
        return await self._lists.runs(narrowed)

    async def list_actions(
        self, request: runs_pb.ListActionsRequest, context: RequestContext
    ) -> runs_pb.ListActionsResponse:
        await self._require(run_id_from(request))
        return await self._lists.actions(request)

    async def abort_run(self, request: runs_pb.AbortRunRequest, context: RequestContext) -> runs_pb.AbortRunResponse:
        """The client learns of it from the answer to its next report."""
        await self._require(run_id_from(request))
        await self._decisions.abort_run(request, context.caller)
        return runs_pb.AbortRunResponse()

    async def watch_run_details(
        self, request: runs_pb.WatchRunDetailsRequest, context: RequestContext
    ) -> AsyncGenerator[runs_pb.WatchRunDetailsResponse, None]:
        await self._require(run_id_from(request))
        async with aclosing(self._details.run(request)) as responses:
            async for response in responses:
                yield response

    async def watch_action_details(
        self, request: runs_pb.WatchActionDetailsRequest, context: RequestContext
    ) -> AsyncGenerator[runs_pb.WatchActionDetailsResponse, None]:
        await self._require(action_id_from(request).run_id)
        async with aclosing(self._details.action(request)) as responses:
            async for response in responses:
                yield response

    async def watch_runs(
        self, request: runs_pb.WatchRunsRequest, context: RequestContext
    ) -> AsyncGenerator[runs_pb.WatchRunsResponse, None]:
        async with aclosing(self._runs.watch(request, source=TRACKED)) as responses:
            async for response in responses:
                yield response

    async def watch_actions(
        self, request: runs_pb.WatchActionsRequest, context: RequestContext
    ) -> AsyncGenerator[runs_pb.WatchActionsResponse, None]:
        await self._require(run_id_from(request))
        async with aclosing(self._actions.watch(request)) as responses:
            async for response in responses:
                yield response

    async def _require(self, run: RunId) -> None:
        root = await self._database.point(lambda tx: tx.actions.get(run.root()))
        if root is None or root.run_source != TRACKED:
            raise _not_tracked(run)


def _taken(tx: Transaction, report: Report | FlyteError, uploads: str, now: int) -> status_pb2.Status:
    if isinstance(report, FlyteError):
        return _refused(report)
    try:
        apply(tx, report, uploads, at=now)
    except FlyteError as error:
        return _refused(error)
    return status_pb2.Status()


def _refused(error: FlyteError) -> status_pb2.Status:
    return status_pb2.Status(code=code_pb2.Code.Value(error.code.upper()), message=error.message)


def _not_tracked(run: RunId) -> NotFound:
    return NotFound(f"tracked run not found: {run}")
