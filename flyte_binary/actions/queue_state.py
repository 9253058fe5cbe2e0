"""QueueService and StateService: the older names of what ActionsService does.

The SDK's runtime uses these two unless its environment has `_U_USE_ACTIONS=1`. They are adapters over the same use
cases, so a run may mix both.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Protocol, cast

from flyteidl2.actions import actions_service_pb2
from flyteidl2.common import phase_pb2
from flyteidl2.core import catalog_pb2
from flyteidl2.task import run_pb2
from flyteidl2.workflow import queue_service_pb2, run_definition_pb2, state_service_pb2
from google.protobuf import json_format
from google.rpc import status_pb2

from flyte_binary.actions.in_band import status_from_error
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.domain.errors import InvalidArgument, NotFound, Unimplemented
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.rpc.require import require_action_id, require_run_id


class Enqueuer(Protocol):
    async def enqueue(self, action: actions_service_pb2.Action, run_spec: run_pb2.RunSpec | None) -> None: ...


class Aborter(Protocol):
    async def abort(self, action: ActionId, reason: str, aborted_by: bytes | None) -> None: ...


class Updates(Protocol):
    def watch(self, parent: ActionId) -> AsyncGenerator[state_service_pb2.ActionUpdate | None, None]:
        """None is the sentinel."""
        ...


class QueueService:
    def __init__(self, enqueuer: Enqueuer, aborter: Aborter) -> None:
        self._enqueuer = enqueuer
        self._aborter = aborter

    async def enqueue_action(
        self, request: queue_service_pb2.EnqueueActionRequest, _context: object
    ) -> queue_service_pb2.EnqueueActionResponse:
        run_spec = request.run_spec if request.HasField("run_spec") else None
        await self._enqueuer.enqueue(_action_from(request), run_spec)
        return queue_service_pb2.EnqueueActionResponse()

    async def abort_queued_run(
        self, request: queue_service_pb2.AbortQueuedRunRequest, _context: object
    ) -> queue_service_pb2.AbortQueuedRunResponse:
        run = require_run_id(request.run_id, "run_id")
        await self._aborter.abort(run.root(), request.reason or "aborted through the queue", None)
        return queue_service_pb2.AbortQueuedRunResponse()

    async def abort_queued_action(
        self, request: queue_service_pb2.AbortQueuedActionRequest, _context: object
    ) -> queue_service_pb2.AbortQueuedActionResponse:
        action = require_action_id(request.action_id, "action_id")
        await self._aborter.abort(action, request.reason or "aborted by its parent", None)
        return queue_service_pb2.AbortQueuedActionResponse()


class StateService:
    def __init__(self, database: Database, updates: Updates) -> None:
        self._database = database
        self._updates = updates

    async def watch(
        self, request: state_service_pb2.WatchRequest, _context: object
    ) -> AsyncIterator[state_service_pb2.WatchResponse]:
        if not request.HasField("parent_action_id"):
            raise InvalidArgument("filter is required: set parent_action_id")
        parent = require_action_id(request.parent_action_id, "parent_action_id")
        async with aclosing(self._updates.watch(parent)) as updates:
            async for update in updates:
                if update is None:
                    control = state_service_pb2.ControlMessage(sentinel=True)
                    yield state_service_pb2.WatchResponse(control_message=control)
                else:
                    yield state_service_pb2.WatchResponse(action_update=update)

    async def get(self, request: state_service_pb2.GetRequest, _context: object) -> state_service_pb2.GetResponse:
        """The state is protobuf JSON of the action's `workflow.ActionStatus`; an action that is not there is told by
        the status inside the response."""
        action = require_action_id(request.action_id, "action_id")
        row = await self._database.point(lambda tx: tx.actions.get(action))
        response = state_service_pb2.GetResponse(action_id=request.action_id, status=status_pb2.Status())
        if row is None:
            error = NotFound(f"action_id: action {action} does not exist")
            response.status.CopyFrom(status_from_error(error))
        else:
            response.state = json_format.MessageToJson(_status_of(row), indent=None)
        return response

    async def put(self, _request: state_service_pb2.PutRequest, _context: object) -> state_service_pb2.PutResponse:
        raise Unimplemented(
            "The state of an action is set by its executor alone; one outside this server reports it with "
            "InternalRunService/UpdateActionStatus."
        )


def _action_from(request: queue_service_pb2.EnqueueActionRequest) -> actions_service_pb2.Action:
    """Raises `InvalidArgument` without a spec: the SDK leaves it out for conditions, which this path cannot carry."""
    action = actions_service_pb2.Action(
        action_id=request.action_id,
        parent_action_name=request.parent_action_name,
        input_uri=request.input_uri,
        run_output_base=request.run_output_base,
        group=request.group,
        subject=request.subject,
    )
    match request.WhichOneof("spec"):
        case "task":
            action.task.CopyFrom(request.task)
        case "trace":
            action.trace.CopyFrom(request.trace)
        case "condition":
            action.condition.CopyFrom(request.condition)
        case _:
            raise InvalidArgument(
                "spec is required: one of task, trace or condition. The SDK leaves it out when it sends a condition "
                "to QueueService: set _U_USE_ACTIONS=1 in the environment of the task"
            )
    return action


def _status_of(row: ActionRow) -> run_definition_pb2.ActionStatus:
    status = run_definition_pb2.ActionStatus(
        phase=cast("phase_pb2.ActionPhase", int(row.phase)),
        start_time=micros_to_proto(row.created_at),
        attempts=row.attempts,
        cache_status=cast("catalog_pb2.CatalogCacheStatus", row.cache_status),
    )
    if row.ended_at is not None:
        status.end_time.CopyFrom(micros_to_proto(row.ended_at))
        status.duration_ms = max(row.ended_at - row.created_at, 0) // 1000
    return status
