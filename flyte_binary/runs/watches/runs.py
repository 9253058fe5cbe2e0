"""WatchRuns: the newest runs, then every run that is created or changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection
from dataclasses import replace

from flyteidl2.task import task_definition_pb2
from flyteidl2.workflow import run_definition_pb2, run_service_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.run_listing import RunScope, newest_runs, runs_named
from flyte_binary.domain import topics
from flyte_binary.domain.ids import ProjectId, RunId
from flyte_binary.domain.names import check_text
from flyte_binary.live.hub import Hub
from flyte_binary.live.watch import SharedWatches
from flyte_binary.runs.requests import project_id_from
from flyte_binary.runs.view.action import run_of

Run = run_definition_pb2.Run

SNAPSHOT_LIMIT = 100
"""Runs in the first message, and in every later one."""


class RunsWatch:
    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._watches = SharedWatches(hub, self._read)

    async def watch(
        self, request: run_service_pb2.WatchRunsRequest, *, source: int | None = None
    ) -> AsyncGenerator[run_service_pb2.WatchRunsResponse, None]:
        """Never ends by itself. There is one organisation and one cluster, so these targets are all runs; with
        `source`, a `RunSource`, those that come from there."""
        topic, scope, wanted = _target(request)
        scope = replace(scope, run_source=source)
        with self._watches.open(topic) as watch:
            rows = await self._database.read(lambda tx: newest_runs(tx.connection, scope, limit=SNAPSHOT_LIMIT))
            if rows:
                yield run_service_pb2.WatchRunsResponse(runs=[run_of(row) for row in sorted(rows, key=_listed)])
            while True:
                changed = await watch.next()
                runs = [run for run in changed.values() if wanted(run) and _is_from(run, source)]
                for start in range(0, len(runs), SNAPSHOT_LIMIT):
                    yield run_service_pb2.WatchRunsResponse(runs=runs[start : start + SNAPSHOT_LIMIT])

    async def _read(self, topic: topics.Topic, keys: Collection[topics.Key]) -> dict[topics.Key, Run]:
        by_run = {run_id_of(topic, key): key for key in keys}
        rows = await self._database.read(lambda tx: runs_named(tx.connection, list(by_run)))
        return {by_run[row.run_id]: run_of(row) for row in rows}


def topic_of(project: ProjectId | None) -> topics.Topic:
    return topics.ALL_RUNS if project is None else topics.runs(project)


def run_id_of(topic: topics.Topic, key: topics.Key) -> RunId:
    """Keys name the project only where the topic does not."""
    project, domain, name = (*topic[1:], *key)
    return RunId(project, domain, name)


def _target(
    request: run_service_pb2.WatchRunsRequest,
) -> tuple[topics.Topic, RunScope, Callable[[Run], bool]]:
    match request.WhichOneof("target"):
        case "project_id":
            project = project_id_from(request.project_id)
            return topic_of(project), RunScope(project=project), _any
        case "task_id":
            task = request.task_id
            check_text("task_id.name", task.name, required=True)
            scope = RunScope(
                task_project=task.project, task_domain=task.domain, task_name=task.name, task_version=task.version
            )
            return topic_of(None), scope, lambda run: _is_of(run.action.metadata.task.id, task)
        case _:
            return topic_of(None), RunScope(), _any


def _any(_: Run) -> bool:
    return True


def _is_from(run: Run, source: int | None) -> bool:
    return source is None or run.action.metadata.source == source


def _is_of(task: task_definition_pb2.TaskIdentifier, wanted: task_definition_pb2.TaskIdentifier) -> bool:
    """What the request leaves empty may be anything."""
    return all(getattr(wanted, part) in ("", getattr(task, part)) for part in ("project", "domain", "name", "version"))


def _listed(row: ActionRow) -> tuple[int, int]:
    """The order of ListRuns: what is not finished first, then the newest."""
    return int(row.phase), -row.created_at
