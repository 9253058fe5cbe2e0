"""AbortRun, AbortAction and SignalEvent: requests checked and converted for whoever carries them out."""

from __future__ import annotations

from typing import Protocol

from flyteidl2.core import literals_pb2
from flyteidl2.workflow import run_service_pb2

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.names import check_text
from flyte_binary.rpc.identity import Caller
from flyte_binary.runs.callers import stored_identity_of
from flyte_binary.runs.requests import action_id_from, run_id_from

DEFAULT_REASON = "User requested abort"
REASON_LIMIT = 10_000


class Aborter(Protocol):
    async def abort(self, action: ActionId, reason: str, aborted_by: bytes | None) -> None:
        """With its whole subtree; what has ended stays as it ended. Raises `NotFound`."""
        ...


class Signaller(Protocol):
    async def signal(self, action: ActionId, value: literals_pb2.Literal, signalled_by: bytes | None) -> None:
        """Raises `NotFound`, `FailedPrecondition` or `InvalidArgument`."""
        ...


class Decisions:
    def __init__(self, aborter: Aborter, signaller: Signaller) -> None:
        self._aborter = aborter
        self._signaller = signaller

    async def abort_run(self, request: run_service_pb2.AbortRunRequest, caller: Caller) -> None:
        run = run_id_from(request)
        reason = request.reason if request.HasField("reason") else DEFAULT_REASON
        check_text("reason", reason, limit=REASON_LIMIT)
        await self._aborter.abort(run.root(), reason, stored_identity_of(caller))

    async def abort_action(self, request: run_service_pb2.AbortActionRequest, caller: Caller) -> None:
        action = action_id_from(request)
        check_text("reason", request.reason, limit=REASON_LIMIT)
        await self._aborter.abort(action, request.reason or DEFAULT_REASON, stored_identity_of(caller))

    async def signal(self, request: run_service_pb2.SignalEventRequest, caller: Caller) -> None:
        """`parent_action_name` tells nothing new: names of actions are unique within a run."""
        action = action_id_from(request)
        await self._signaller.signal(action, literal_of(request.payload), stored_identity_of(caller))


def literal_of(payload: run_service_pb2.EventPayload) -> literals_pb2.Literal:
    """Raises `InvalidArgument` for no value."""
    primitive = literals_pb2.Primitive()
    match payload.WhichOneof("value"):
        case "bool_value":
            primitive.boolean = payload.bool_value
        case "int_value":
            primitive.integer = payload.int_value
        case "float_value":
            primitive.float_value = payload.float_value
        case "string_value":
            primitive.string_value = payload.string_value
        case _:
            raise InvalidArgument(
                "payload.value is required: one of bool_value, int_value, float_value or string_value"
            )
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=primitive))
