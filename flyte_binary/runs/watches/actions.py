"""WatchActions: the actions of a run as a tree, then every change of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable

from flyteidl2.workflow import run_service_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.domain import topics
from flyte_binary.domain.ids import RunId
from flyte_binary.live.hub import Hub
from flyte_binary.live.watch import SharedWatches
from flyte_binary.runs.requests import run_id_from
from flyte_binary.runs.watches.tree import ActionTree, tree_filter_from_proto

PAGE_LIMIT = 1000
"""Actions of one read of the snapshot, and at most in one message."""


class ActionsWatch:
    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._watches = SharedWatches(hub, self._read)

    async def watch(
        self, request: run_service_pb2.WatchActionsRequest
    ) -> AsyncGenerator[run_service_pb2.WatchActionsResponse, None]:
        """Never ends by itself: children may end after the run. A run that does not exist yet may still come."""
        run = run_id_from(request)
        tree = ActionTree(tree_filter_from_proto(request.filter))
        with self._watches.open(topics.run(run)) as watch:
            after: tuple[int, str] | None = None
            while rows := await self._page(run, after):
                after = (rows[-1].created_at, rows[-1].id.name)
                for response in _responses(tree, rows):
                    yield response
            while True:
                changed = await watch.next()
                for response in _responses(tree, changed.values()):
                    yield response

    async def _page(self, run: RunId, after: tuple[int, str] | None) -> list[ActionRow]:
        return await self._database.read(lambda tx: tx.actions.page_of_run(run, after=after, limit=PAGE_LIMIT))

    async def _read(self, topic: topics.Topic, keys: Collection[topics.Key]) -> dict[topics.Key, ActionRow]:
        run = RunId(*topic[1:])
        rows = await self._database.read(lambda tx: tx.actions.get_many(run, [key[0] for key in keys]))
        return {(row.id.name,): row for row in rows}


def _responses(tree: ActionTree, rows: Iterable[ActionRow]) -> list[run_service_pb2.WatchActionsResponse]:
    told = tree.feed(rows)
    return [
        run_service_pb2.WatchActionsResponse(enriched_actions=told[start : start + PAGE_LIMIT])
        for start in range(0, len(told), PAGE_LIMIT)
    ]
