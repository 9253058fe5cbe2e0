"""GetActionData: the inputs and outputs of an action, read from the store."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from flyteidl2.dataproxy import dataproxy_service_pb2 as pb
from flyteidl2.task import common_pb2
from google.protobuf.message import DecodeError, Message

from flyte_binary.dataproxy.ports import Actions
from flyte_binary.domain.errors import FailedPrecondition, NotFound, ResourceExhausted
from flyte_binary.domain.ids import ActionId
from flyte_binary.storage.store import ObjectStore

DEFAULT_LIMIT_BYTES = 64 * 1024 * 1024
"""For inputs and outputs each. Values that are meant to be larger (files, dataframes) are stored beside them."""

MESSAGE_LIMIT_BYTES = 2**31 - 1
"""More than that no protobuf message can be."""

_LARGE_BYTES = 256 * 1024
"""From here on, parsing takes milliseconds and leaves the event loop."""

M = TypeVar("M", bound=Message)


class ActionDataReader:
    def __init__(self, store: ObjectStore, actions: Actions, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._store = store
        self._actions = actions
        self._limit_bytes = limit_bytes

    async def get(self, action: ActionId) -> pb.GetActionDataResponse:
        """An action that is not done, or did not succeed, has inputs and no outputs.

        What the action is known to have but the store has no more is `NotFound`: the SDK tells from the
        word "inputs" in it whether a rerun is possible, and would otherwise take the missing outputs of a
        finished run for None.
        """
        data = await self._actions.data(action)
        if data is None:
            raise NotFound(f"action {action} not found")
        inputs, outputs = await asyncio.gather(
            self.read(data.inputs_uri, common_pb2.Inputs, f"the inputs of action {action}"),
            self.read(data.outputs_uri, common_pb2.Outputs, f"the outputs of action {action}"),
        )
        return pb.GetActionDataResponse(
            inputs=inputs,
            outputs=data.outputs if data.outputs is not None else outputs,
            inputs_uri=data.inputs_uri,
            outputs_uri=data.outputs_uri,
        )

    async def read(self, uri: str, kind: type[M], what: str) -> M:
        """Of the content of a file, an empty one without a URI; errors call it `what`. Raises `NotFound`,
        `ResourceExhausted` over the limit, and `FailedPrecondition` for what is no such message."""
        if not uri:
            return kind()
        try:
            content = await self._store.get(uri, limit_bytes=self._limit_bytes)
        except NotFound as error:
            raise NotFound(f"{what} are no longer in storage: {uri}") from error
        except ResourceExhausted as error:
            raise ResourceExhausted(
                f"{what} are too large to be sent (the most is {self._limit_bytes} bytes); read them from {uri}"
            ) from error
        try:
            if len(content) < _LARGE_BYTES:
                return kind.FromString(content)
            return await asyncio.to_thread(kind.FromString, content)
        except DecodeError as error:
            raise FailedPrecondition(f"{what} cannot be read: {uri} is no {kind.DESCRIPTOR.full_name}") from error
