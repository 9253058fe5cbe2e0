"""Signal: the value that a paused condition has been waiting for.

The same value again is fine, another one is refused; kinds are not converted into one another.
"""

from __future__ import annotations

from flyteidl2.core import literals_pb2, types_pb2
from flyteidl2.workflow import run_definition_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db import moves
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import FailedPrecondition, InvalidArgument, NotFound
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase

_KINDS = {
    "boolean": types_pb2.BOOLEAN,
    "integer": types_pb2.INTEGER,
    "float_value": types_pb2.FLOAT,
    "string_value": types_pb2.STRING,
}


class Signaller:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def signal(self, action: ActionId, value: literals_pb2.Literal, signalled_by: bytes | None) -> None:
        """Raises `InvalidArgument` for a value of the wrong kind, `NotFound`, and `FailedPrecondition`
        if the action is no condition or has ended otherwise."""
        kind = _kind_of(value)
        body = value.SerializeToString(deterministic=True)
        now = self._clock.now()

        def operation(tx: Transaction) -> None:
            row = tx.actions.lock(action)
            if row is None:
                raise NotFound(f"action {action} does not exist")
            if row.action_type != run_definition_pb2.ACTION_TYPE_CONDITION:
                raise FailedPrecondition(f"action {action} is not a condition")
            if row.value is not None:
                if row.value == body:
                    return
                raise FailedPrecondition(f"condition {action} has been signalled with another value")
            if row.terminal:
                raise FailedPrecondition(f"condition {action} has ended ({row.phase.name})")
            declared = run_definition_pb2.ConditionAction.FromString(row.detail or b"").type.simple
            if declared != kind:
                raise InvalidArgument(
                    f"value: the condition takes {types_pb2.SimpleType.Name(declared)}, "
                    f"got {types_pb2.SimpleType.Name(kind)}"
                )
            moves.finish(tx, row, Phase.SUCCEEDED, at=now, value=body, signalled_by=signalled_by)

        await self._database.write(operation, run=action.run_id)


def _kind_of(value: literals_pb2.Literal) -> types_pb2.SimpleType:
    kind = None
    if value.WhichOneof("value") == "scalar" and value.scalar.WhichOneof("value") == "primitive":
        kind = _KINDS.get(value.scalar.primitive.WhichOneof("value") or "")
    if kind is None:
        raise InvalidArgument("value must be a concrete bool, int, float or str literal")
    return kind
