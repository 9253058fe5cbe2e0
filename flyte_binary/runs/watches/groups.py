"""WatchGroups: runs by task, in numbers; first all groups, then those that changed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable

from flyteidl2.workflow import run_service_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.run_listing import RunFacts, run_facts, run_facts_named
from flyte_binary.domain import topics
from flyte_binary.domain.ids import ProjectId, RunId
from flyte_binary.domain.timestamps import proto_to_micros
from flyte_binary.live.hub import Hub
from flyte_binary.live.watch import SharedWatches
from flyte_binary.runs.requests import project_id_from
from flyte_binary.runs.view.groups import TaskGroup, group_name_of, group_of
from flyte_binary.runs.watches.runs import run_id_of, topic_of

RUNS_LIMIT = 1000
"""The newest runs, from which the numbers are made (reference backend behaviour)."""


class GroupsWatch:
    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._watches = SharedWatches(hub, self._read)

    async def watch(
        self, request: run_service_pb2.WatchGroupsRequest
    ) -> AsyncGenerator[run_service_pb2.WatchGroupsResponse, None]:
        """Ends after the first message if `end_date` is set, else never."""
        project = project_id_from(request.project_id) if request.WhichOneof("scope_by") == "project_id" else None
        since = proto_to_micros(request.start_date) if request.HasField("start_date") else None
        until = proto_to_micros(request.end_date) if request.HasField("end_date") else None
        with self._watches.open(topic_of(project)) as watch:
            groups = Groups(await self._all(project, since, until))
            yield run_service_pb2.WatchGroupsResponse(
                task_groups=_ordered(groups.all(), ascending=_ascending(request)), sentinel=True
            )
            if until is not None:
                return
            while True:
                changed = await watch.next()
                inside = [run for run in changed.values() if since is None or run.created_at >= since]
                news = groups.update(inside)
                if news:
                    yield run_service_pb2.WatchGroupsResponse(task_groups=news)

    async def _all(self, project: ProjectId | None, since: int | None, until: int | None) -> list[RunFacts]:
        return await self._database.read(
            lambda tx: run_facts(tx.connection, project, since=since, until=until, limit=RUNS_LIMIT)
        )

    async def _read(self, topic: topics.Topic, keys: Collection[topics.Key]) -> dict[topics.Key, RunFacts]:
        by_run = {run_id_of(topic, key): key for key in keys}
        found = await self._database.read(lambda tx: run_facts_named(tx.connection, list(by_run)))
        return {by_run[run.run]: run for run in found}


class Groups:
    """The groups as one watcher knows them."""

    def __init__(self, runs: Iterable[RunFacts]) -> None:
        self._runs: dict[str, dict[RunId, RunFacts]] = {}
        self._shown: dict[str, TaskGroup] = {}
        self.update(runs)

    def all(self) -> list[TaskGroup]:
        return list(self._shown.values())

    def update(self, runs: Iterable[RunFacts]) -> list[TaskGroup]:
        """Take new states of runs; the groups that look different now."""
        touched: dict[str, None] = {}
        for run in runs:
            name = group_name_of(run)
            self._runs.setdefault(name, {})[run.run] = run
            touched[name] = None
        news: list[TaskGroup] = []
        for name in touched:
            group = group_of(name, self._runs[name].values())
            if group != self._shown.get(name):
                self._shown[name] = group
                news.append(group)
        return news


def _ordered(groups: Iterable[TaskGroup], *, ascending: bool) -> list[TaskGroup]:
    """By the latest run; the newest first unless the request says otherwise."""
    return sorted(groups, key=lambda group: group.latest_run_time.ToNanoseconds(), reverse=not ascending)


def _ascending(request: run_service_pb2.WatchGroupsRequest) -> bool:
    return any(
        field.WhichOneof("sort_by") == "created_at" and field.created_at == 1 for field in request.known_sort_fields
    )
