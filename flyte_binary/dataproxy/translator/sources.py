"""Literals that a request does not carry but points at: a file of an action, or the inputs of a trigger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flyteidl2.common import identifier_pb2
from flyteidl2.core import literals_pb2
from flyteidl2.task import common_pb2
from flyteidl2.workflow import translator_service_pb2 as pb

from flyte_binary.dataproxy import require
from flyte_binary.dataproxy.action_data import ActionDataReader
from flyte_binary.dataproxy.ports import Actions, Triggers
from flyte_binary.domain.errors import InvalidArgument, NotFound
from flyte_binary.domain.ids import TriggerId
from flyte_binary.rpc.require import require_name


class LiteralSources:
    def __init__(self, reader: ActionDataReader, actions: Actions, triggers: Triggers) -> None:
        self._reader = reader
        self._actions = actions
        self._triggers = triggers

    async def of(self, request: pb.LiteralsToLaunchFormJsonRequest) -> Mapping[str, literals_pb2.Literal]:
        """A trigger wins over a file, a file over what the request carries."""
        if request.HasField("trigger_id"):
            return await self._of_trigger(request.trigger_id)
        if request.literals_uri:
            return await self._of_action(request)
        return _by_name(request.literals)

    async def _of_trigger(self, identifier: identifier_pb2.TriggerIdentifier) -> Mapping[str, literals_pb2.Literal]:
        for part in ("project", "domain", "task_name", "name"):
            require_name(getattr(identifier.name, part), f"trigger_id.name.{part}", longest=255)
        trigger = TriggerId.from_proto(identifier.name)
        spec = await self._triggers.spec(trigger, identifier.revision)
        if spec is None:
            raise NotFound(f"trigger {trigger} has no revision {identifier.revision}")
        if spec.HasField("inputs"):
            return _by_name(spec.inputs.literals)
        uri = spec.offloaded_input_data.uri
        if not uri:
            raise InvalidArgument(f"trigger_id: trigger {trigger} has no inputs")
        inputs = await self._reader.read(uri, common_pb2.Inputs, f"the inputs of trigger {trigger}")
        return _by_name(inputs.literals)

    async def _of_action(self, request: pb.LiteralsToLaunchFormJsonRequest) -> Mapping[str, literals_pb2.Literal]:
        """Only what belongs to the named action is read: no caller gets at other files this way."""
        if not request.HasField("action_id"):
            raise InvalidArgument("action_id is required with literals_uri")
        action = require.action_id(request.action_id)
        data = await self._actions.data(action)
        if data is None:
            raise NotFound(f"action {action} not found")
        if request.literals_uri not in (data.inputs_uri, data.outputs_uri):
            raise InvalidArgument(f"literals_uri is neither the inputs nor the outputs of action {action}")
        # Inputs and outputs have their literals in the same field.
        inputs = await self._reader.read(request.literals_uri, common_pb2.Inputs, f"the literals of action {action}")
        return _by_name(inputs.literals)


def _by_name(literals: Iterable[common_pb2.NamedLiteral]) -> Mapping[str, literals_pb2.Literal]:
    return {literal.name: literal.value for literal in literals}
