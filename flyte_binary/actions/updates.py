"""WatchForUpdates: a parent follows its children.

Snapshot (the parent itself and every child that counts), one sentinel, then every later state.
There is no resume token, so each stream starts with all of it again; superseded children are left
out, so that the next attempt of a parent does not replay the failures of the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable

from flyteidl2.core import execution_pb2, literals_pb2
from flyteidl2.workflow import run_definition_pb2, state_service_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.domain import locations, topics
from flyte_binary.domain.errors import NotFound
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import Phase
from flyte_binary.domain.wire_enums import phase_to_wire
from flyte_binary.live.hub import Hub

KEEP_ALIVE_SECONDS = 20.0
"""A further sentinel after so long a silence: clients ignore it, proxies see life."""

FEW = 32


class Updates:
    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._hub = hub

    async def watch(self, parent: ActionId) -> AsyncGenerator[state_service_pb2.ActionUpdate | None, None]:
        """Yields updates, and None for each sentinel. Ends only by being closed.

        Raises `NotFound` if the parent does not exist.
        """
        with self._hub.subscribe(topics.children(parent.run_id, parent.name)) as subscription:
            sent: dict[str, int] = {}
            for update in _news(await self._snapshot(parent), sent):
                yield update
            yield None
            while True:
                try:
                    # Not wait_for: that of Python 3.11 swallows a cancellation if a change comes at the same moment.
                    async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                        dirty = await subscription.wait()
                except TimeoutError:
                    yield None
                    continue
                names = [name for (name,) in dirty]
                read = self._database.point if len(names) <= FEW else self._database.read
                rows = await read(lambda tx, names=names: tx.actions.get_many(parent.run_id, names))
                for update in _news(rows, sent):
                    yield update

    async def _snapshot(self, parent: ActionId) -> list[ActionRow]:
        own, children = await self._database.read(lambda tx: (tx.actions.get(parent), tx.actions.children(parent)))
        if own is None:
            raise NotFound(f"action {parent} does not exist")
        return [own, *children]


def _news(rows: Iterable[ActionRow], sent: dict[str, int]) -> Iterable[state_service_pb2.ActionUpdate]:
    """Updates for the rows that are newer than what was sent."""
    for row in rows:
        if row.superseded or sent.get(row.id.name) == row.version:
            continue
        sent[row.id.name] = row.version
        yield update_of(row)


def update_of(row: ActionRow) -> state_service_pb2.ActionUpdate:
    update = state_service_pb2.ActionUpdate(
        action_id=row.id.to_proto(),
        phase=phase_to_wire(row.phase),
        output_uri=output_uri_of(row),
    )
    error = error_of(row)
    if error is not None:
        update.error.CopyFrom(error)
    if row.value is not None:
        update.value.CopyFrom(literals_pb2.Literal.FromString(row.value))
    return update


def output_uri_of(row: ActionRow) -> str:
    """For tasks a folder, known before there is anything in it; for traces the file."""
    if row.output_uri or row.action_type != run_definition_pb2.ACTION_TYPE_TASK:
        return row.output_uri
    if not row.run_output_base:
        return ""
    return locations.attempt_prefix(row.run_output_base, row.id.name, row.attempts)


def error_of(row: ActionRow) -> execution_pb2.ExecutionError | None:
    """Never absent on a failure: without it the SDK looks for a file that may not exist."""
    if row.error is not None:
        return execution_pb2.ExecutionError.FromString(row.error)
    if row.phase == Phase.FAILED:
        return execution_pb2.ExecutionError(code="Failed", message="the action failed without a recorded error")
    if row.phase == Phase.ABORTED and row.abort_reason:
        return execution_pb2.ExecutionError(code="Aborted", message=row.abort_reason)
    return None
