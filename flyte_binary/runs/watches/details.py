"""WatchActionDetails and WatchRunDetails: one action as it goes, until it has ended.

The stream ends with a message whose `status.phase` is terminal and whose attempts agree with it, and never with
another: `run.wait()` of the SDK asks again after half a second if it does.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing

from flyteidl2.workflow import run_definition_pb2, run_service_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.errors import NotFound
from flyte_binary.domain.ids import ActionId, RunId
from flyte_binary.domain.phases import is_terminal
from flyte_binary.live.hub import Hub
from flyte_binary.live.watch import SharedWatches
from flyte_binary.runs.reads import action_not_found, facts_of, run_not_found
from flyte_binary.runs.requests import action_id_from, run_id_from
from flyte_binary.runs.view.details import run_details_of

Details = run_definition_pb2.RunDetails


class DetailsWatch:
    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._watches = SharedWatches(hub, self._read)

    async def action(
        self, request: run_service_pb2.WatchActionDetailsRequest
    ) -> AsyncGenerator[run_service_pb2.WatchActionDetailsResponse, None]:
        action = action_id_from(request)
        async with aclosing(self._follow(action, action_not_found(action))) as states:
            async for details in states:
                yield run_service_pb2.WatchActionDetailsResponse(details=details.action)

    async def run(
        self, request: run_service_pb2.WatchRunDetailsRequest
    ) -> AsyncGenerator[run_service_pb2.WatchRunDetailsResponse, None]:
        run = run_id_from(request)
        async with aclosing(self._follow(run.root(), run_not_found(run))) as states:
            async for details in states:
                yield run_service_pb2.WatchRunDetailsResponse(details=details)

    async def _follow(self, action: ActionId, missing: NotFound) -> AsyncGenerator[Details, None]:
        key = (action.name,)
        with self._watches.open(topics.children(action.run_id, action.name)) as watch:
            shown: Details | None = None
            found = await watch.read([key])
            while True:
                details = found.get(key)
                if details is None:
                    raise missing
                if details != shown:
                    yield details
                    shown = details
                if is_terminal(details.action.status.phase):
                    return
                found = await watch.next(only=[key])

    async def _read(self, topic: topics.Topic, keys: Collection[topics.Key]) -> dict[topics.Key, Details]:
        _, project, domain, name, _ = topic
        run = RunId(project, domain, name)

        def read(tx: Transaction) -> dict[topics.Key, Details]:
            facts = {key: facts_of(tx, run.action(key[0])) for key in keys}
            return {key: run_details_of(found) for key, found in facts.items() if found is not None}

        return await self._database.point(read)
