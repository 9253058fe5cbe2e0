"""TriggerService: deployed triggers and their revisions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flyteidl2.common import identifier_pb2
from flyteidl2.trigger import trigger_service_pb2 as pb

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.db.trigger_rows import TriggerRow
from flyte_binary.domain.errors import NotFound
from flyte_binary.domain.filters import INT64_LIMIT
from flyte_binary.domain.ids import TriggerId
from flyte_binary.rpc.identity import RequestContext
from flyte_binary.runs.callers import stored_identity_of
from flyte_binary.runs.projects.scope import require_domain, require_project
from flyte_binary.runs.triggers import changes
from flyte_binary.runs.triggers.draft import check_trigger_name, draft_from_request, trigger_id_from
from flyte_binary.runs.triggers.fit import require_task
from flyte_binary.runs.triggers.lists import TriggerLists
from flyte_binary.runs.triggers.view import details_of
from flyte_binary.storage.store import ObjectStore


class TriggerService:
    def __init__(self, *, database: Database, store: ObjectStore, clock: Clock, domains: Collection[str]) -> None:
        """`domains` are the ids of those that every project has."""
        self._database = database
        self._store = store
        self._clock = clock
        self._domains = domains
        self._lists = TriggerLists(database)

    async def deploy_trigger(
        self, request: pb.DeployTriggerRequest, context: RequestContext
    ) -> pb.DeployTriggerResponse:
        draft = draft_from_request(request, self._store)
        require_domain(draft.id.domain, self._domains)
        by, now = stored_identity_of(context.caller), self._clock.now()

        def operation(tx: Transaction) -> TriggerRow:
            require_project(tx, draft.id.project)
            require_task(tx, draft)
            return changes.deploy(tx, draft, revision=request.revision, with_task=False, by=by, at=now)

        row = await self._database.write(operation)
        return pb.DeployTriggerResponse(trigger=details_of(row))

    async def get_trigger_details(
        self, request: pb.GetTriggerDetailsRequest, context: RequestContext
    ) -> pb.GetTriggerDetailsResponse:
        check_trigger_name(request.name, "name", task_required=False)
        trigger = TriggerId.from_proto(request.name)
        row = await self._database.point(lambda tx: tx.triggers.find(trigger))
        if row is None:
            raise NotFound(f"trigger not found: {trigger}")
        return pb.GetTriggerDetailsResponse(trigger=details_of(row))

    async def get_trigger_revision_details(
        self, request: pb.GetTriggerRevisionDetailsRequest, context: RequestContext
    ) -> pb.GetTriggerRevisionDetailsResponse:
        trigger, revision = trigger_id_from(request.id.name, "id.name"), min(request.id.revision, INT64_LIMIT)
        row = await self._database.point(lambda tx: tx.triggers.get_revision(trigger, revision))
        if row is None:
            raise NotFound(f"trigger revision not found: {trigger}@{request.id.revision}")
        return pb.GetTriggerRevisionDetailsResponse(trigger=details_of(row))

    async def list_triggers(self, request: pb.ListTriggersRequest, context: RequestContext) -> pb.ListTriggersResponse:
        return await self._lists.triggers(request)

    async def get_trigger_revision_history(
        self, request: pb.GetTriggerRevisionHistoryRequest, context: RequestContext
    ) -> pb.GetTriggerRevisionHistoryResponse:
        return await self._lists.history(request)

    async def update_triggers(
        self, request: pb.UpdateTriggersRequest, context: RequestContext
    ) -> pb.UpdateTriggersResponse:
        """All or, if one is named wrongly, none; those that do not exist are passed over."""
        named = _named(request.names)
        by, now = stored_identity_of(context.caller), self._clock.now()

        def operation(tx: Transaction) -> None:
            for trigger in named:
                changes.set_active(tx, trigger, active=request.active, by=by, at=now)

        await self._database.write(operation)
        return pb.UpdateTriggersResponse()

    async def delete_triggers(
        self, request: pb.DeleteTriggersRequest, context: RequestContext
    ) -> pb.DeleteTriggersResponse:
        """As `update_triggers`."""
        named = _named(request.names)
        by, now = stored_identity_of(context.caller), self._clock.now()

        def operation(tx: Transaction) -> None:
            for trigger in named:
                changes.delete(tx, trigger, by=by, at=now)

        await self._database.write(operation)
        return pb.DeleteTriggersResponse()


def _named(names: Sequence[identifier_pb2.TriggerName]) -> list[TriggerId]:
    """In one order for everybody, so that two callers never wait for each other's rows."""
    return sorted({trigger_id_from(name, f"names[{place}]") for place, name in enumerate(names)})
