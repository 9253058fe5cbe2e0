"""AppService: what is wanted of apps, and what is seen of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from datetime import timedelta

from flyteidl2.app import app_definition_pb2, app_service_pb2
from flyteidl2.app import app_payload_pb2 as pb

from flyte_binary.app import wanted
from flyte_binary.app.backend import AppBackend
from flyte_binary.app.lists import AppLists
from flyte_binary.app.requests import app_id_of, check_reason, check_spec, required_app_id
from flyte_binary.app.view import app_of, definition_of
from flyte_binary.app.wanted import Draft
from flyte_binary.app.watch import AppWatches
from flyte_binary.control.clock import Clock
from flyte_binary.db.apps import AppRow, Wanted
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import NotFound, Unimplemented
from flyte_binary.domain.ids import AppId
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.callers import identity_of
from flyte_binary.rpc.identity import Caller, RequestContext

FULL_NAME = app_service_pb2.DESCRIPTOR.services_by_name["AppService"].full_name

_OPERATORS = (
    "serves operators that deploy apps on clusters of their own; this server deploys them itself and does not serve it"
)


class AppService:
    def __init__(
        self,
        *,
        database: Database,
        hub: Hub,
        backend: AppBackend,
        clock: Clock,
        domains: Collection[str],
        longest_request: timedelta,
    ) -> None:
        """`domains` are the ids of those that every project has."""
        self._database = database
        self._backend = backend
        self._clock = clock
        self._domains = domains
        self._longest_request = longest_request
        self._lists = AppLists(database, self._shown)
        self._watches = AppWatches(database, hub, self._shown)

    async def create(self, request: pb.CreateRequest, context: RequestContext) -> pb.CreateResponse:
        """Deploy: the app may be there already, and if it is the same, nothing is written."""
        draft = await self._draft(request, context.caller)
        return pb.CreateResponse(app=await self._deploy(draft))

    async def get(self, request: pb.GetRequest, context: RequestContext) -> pb.GetResponse:
        app = required_app_id(request)
        return pb.GetResponse(app=self._shown(await self._database.point(lambda tx: wanted.require(tx, app))))

    async def update(self, request: pb.UpdateRequest, context: RequestContext) -> pb.UpdateResponse:
        """As `create`, but that the revision in the request, if there is one, must be the app's; stopping an app that
        does not exist is `not_found`."""
        check_reason(request.reason)
        draft = await self._draft(request, context.caller)
        if draft.wanted is Wanted.STOPPED:
            await self._database.point(lambda tx: wanted.require(tx, draft.id))
        return pb.UpdateResponse(app=await self._deploy(draft, revision=request.app.metadata.revision))

    async def delete(self, request: pb.DeleteRequest, context: RequestContext) -> pb.DeleteResponse:
        """Also of an app that does not exist."""
        app, now = required_app_id(request), self._clock.now()
        await self._database.write(lambda tx: wanted.delete(tx, app, at=now))
        return pb.DeleteResponse()

    async def list(self, request: pb.ListRequest, context: RequestContext) -> pb.ListResponse:
        return await self._lists.list(request)

    async def watch(self, request: pb.WatchRequest, context: RequestContext) -> AsyncGenerator[pb.WatchResponse]:
        async with aclosing(self._watches.follow(request)) as events:
            async for event in events:
                yield event

    async def update_status(self, request: pb.UpdateStatusRequest, context: RequestContext) -> pb.UpdateStatusResponse:
        raise Unimplemented(f"UpdateStatus {_OPERATORS}")

    async def lease(self, request: pb.LeaseRequest, context: RequestContext) -> AsyncGenerator[pb.LeaseResponse]:
        raise Unimplemented(f"Lease {_OPERATORS}")
        yield pb.LeaseResponse()  # what makes this a stream

    async def _draft(self, request: pb.CreateRequest | pb.UpdateRequest, caller: Caller) -> Draft:
        """Checked as far as it can be without the database."""
        app = app_id_of(request)
        spec, meta = app_definition_pb2.Spec(), request.app.metadata
        spec.CopyFrom(request.app.spec)
        check_spec(spec, longest_request=self._longest_request)
        identity = identity_of(caller)
        if identity is not None and not spec.HasField("creator"):
            spec.creator.CopyFrom(identity)
        return Draft(id=app, org=meta.id.org, spec=spec, meta=meta, by=caller.subject)

    async def _deploy(self, draft: Draft, *, revision: int = 0) -> app_definition_pb2.App:
        now = self._clock.now()
        await self._database.point(lambda tx: self._require_scope(tx, draft.id))
        await self._backend.check(draft.definition())
        row = await self._database.write(lambda tx: wanted.deploy(tx, draft, at=now, revision=revision))
        return self._shown(row)

    def _require_scope(self, tx: Transaction, app: AppId) -> None:
        if app.domain not in self._domains:
            raise NotFound(f'domain "{app.domain}" not found; this server has {", ".join(sorted(self._domains))}')
        if tx.projects.get(app.project) is None:
            raise NotFound(f'project "{app.project}" not found')

    def _shown(self, row: AppRow) -> app_definition_pb2.App:
        return app_of(row, self._backend.public_url(definition_of(row)))
