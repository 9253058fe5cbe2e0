"""WatchClusterEvents: what happened around one attempt, until its action has ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from flyteidl2.workflow import run_definition_pb2, run_service_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow, EventRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.phases import is_terminal
from flyte_binary.live.hub import Hub
from flyte_binary.runs.reads import action_not_found
from flyte_binary.runs.requests import action_id_from


class ClusterEventsWatch:
    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._hub = hub

    async def watch(
        self, request: run_service_pb2.WatchClusterEventsRequest
    ) -> AsyncGenerator[run_service_pb2.WatchClusterEventsResponse, None]:
        """Attempt 0 is the one that is current at the start. Ends with the attempt or the action."""
        action = action_id_from(request, "id")
        key = (action.name,)
        attempt = request.attempt
        seen: set[tuple[int, int]] = set()
        with self._hub.subscribe(topics.children(action.run_id, action.name)) as subscription:
            while True:
                row, events = await self._database.read(lambda tx, number=attempt: _state(tx, action, number))
                attempt = attempt or row.attempts
                fresh = [event for event in events if (event.phase, event.version) not in seen]
                seen.update((event.phase, event.version) for event in fresh)
                happened = [item for event in fresh for item in _decoded(event).cluster_events]
                if happened:
                    yield run_service_pb2.WatchClusterEventsResponse(cluster_events=happened)
                if row.terminal or row.attempts > attempt or any(is_terminal(event.phase) for event in events):
                    return
                while key not in await subscription.wait():
                    pass


def _state(tx: Transaction, action: ActionId, attempt: int) -> tuple[ActionRow, list[EventRow]]:
    row = tx.actions.get(action)
    if row is None:
        raise action_not_found(action)
    return row, tx.events.of_attempt(action, attempt or row.attempts)


def _decoded(event: EventRow) -> run_definition_pb2.ActionEvent:
    return run_definition_pb2.ActionEvent.FromString(event.info)
