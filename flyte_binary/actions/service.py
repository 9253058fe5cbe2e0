"""ActionsService: what the runtime inside a task talks to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from flyteidl2.actions import actions_service_pb2
from flyteidl2.workflow import state_service_pb2

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.enqueue import Enqueuer
from flyte_binary.actions.signal import Signaller
from flyte_binary.actions.updates import Updates
from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import FailedPrecondition, InvalidArgument, NotFound
from flyte_binary.rpc.require import require_action_id


class ActionsService:
    def __init__(
        self,
        *,
        enqueuer: Enqueuer,
        updates: Updates,
        aborter: Aborter,
        signaller: Signaller,
        database: Database,
        clock: Clock,
    ) -> None:
        self._enqueuer = enqueuer
        self._updates = updates
        self._aborter = aborter
        self._signaller = signaller
        self._database = database
        self._clock = clock

    async def enqueue(
        self, request: actions_service_pb2.EnqueueRequest, _context: object
    ) -> actions_service_pb2.EnqueueResponse:
        if not request.HasField("action"):
            raise InvalidArgument("action is required")
        run_spec = request.run_spec if request.HasField("run_spec") else None
        await self._enqueuer.enqueue(request.action, run_spec)
        return actions_service_pb2.EnqueueResponse()

    async def watch_for_updates(
        self, request: actions_service_pb2.WatchForUpdatesRequest, _context: object
    ) -> AsyncIterator[actions_service_pb2.WatchForUpdatesResponse]:
        if not request.HasField("parent_action_id"):
            raise InvalidArgument("filter is required: set parent_action_id")
        parent = require_action_id(request.parent_action_id, "parent_action_id")
        async with aclosing(self._updates.watch(parent)) as updates:
            async for update in updates:
                yield _response(update)

    async def update(
        self, request: actions_service_pb2.UpdateRequest, _context: object
    ) -> actions_service_pb2.UpdateResponse:
        """Only the cache status can be changed from outside: attempts are counted by the executor."""
        action = require_action_id(request.action_id, "action_id")
        status = request.status if request.HasField("status") else None
        now = self._clock.now()

        def operation(tx: Transaction) -> None:
            row = tx.actions.lock(action)
            if row is None:
                raise NotFound(f"action {action} does not exist")
            if status is None:
                return
            if status.attempts not in (0, row.attempts):
                raise FailedPrecondition(
                    f"status.attempts: the action is at attempt {row.attempts}; attempts are counted by the executor"
                )
            if status.cache_status in (0, row.cache_status) or row.terminal:
                return
            if tx.actions.update(action, at=now, cache_status=int(status.cache_status)):
                tx.changed_action(action, row.parent)

        await self._database.write(operation, run=action.run_id)
        return actions_service_pb2.UpdateResponse()

    async def abort(
        self, request: actions_service_pb2.AbortRequest, _context: object
    ) -> actions_service_pb2.AbortResponse:
        action = require_action_id(request.action_id, "action_id")
        aborted_by = request.aborted_by.SerializeToString() if request.HasField("aborted_by") else None
        await self._aborter.abort(action, request.reason or "aborted by its parent", aborted_by)
        return actions_service_pb2.AbortResponse()

    async def signal(
        self, request: actions_service_pb2.SignalRequest, _context: object
    ) -> actions_service_pb2.SignalResponse:
        signalled_by = request.signalled_by.SerializeToString() if request.HasField("signalled_by") else None
        action = require_action_id(request.action_id, "action_id")
        await self._signaller.signal(action, request.value, signalled_by)
        return actions_service_pb2.SignalResponse()


def _response(update: state_service_pb2.ActionUpdate | None) -> actions_service_pb2.WatchForUpdatesResponse:
    if update is None:
        control = state_service_pb2.ControlMessage(sentinel=True)
        return actions_service_pb2.WatchForUpdatesResponse(control_message=control)
    return actions_service_pb2.WatchForUpdatesResponse(action_update=update)
