"""AppService.Watch: what is there, then each change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping

from flyteidl2.app import app_definition_pb2
from flyteidl2.app import app_payload_pb2 as pb

from flyte_binary.app.lists import Shown, project_of
from flyte_binary.app.requests import app_id_from
from flyte_binary.db.apps import AppQuery, AppRow, Wanted
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain import topics
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import AppId, ProjectId
from flyte_binary.live.hub import Hub
from flyte_binary.live.watch import SharedWatches, Watch

REPEAT_SECONDS = 10.0
"""A watch of one app says so often what it has said last: the SDK looks at updates only, so an app that became
active before the watch was opened would otherwise keep it waiting (reference behaviour, which hangs there)."""

_App = app_definition_pb2.App


class AppWatches:
    def __init__(self, database: Database, hub: Hub, shown: Shown, *, repeat_seconds: float = REPEAT_SECONDS) -> None:
        self._database = database
        self._shown = shown
        self._repeat_seconds = repeat_seconds
        self._watches: SharedWatches[_App] = SharedWatches(hub, self._read)

    async def follow(self, request: pb.WatchRequest) -> AsyncGenerator[pb.WatchResponse]:
        """Create events for what is there, each followed by an update event if anything is known of the app, then
        creations, updates and deletions; of several changes of one app at least the last. Never ends by itself."""
        topic, query, app = _target(request)
        with self._watches.open(topic) as watch:
            known: dict[topics.Key, _App] = {}
            for row in await self._database.read(lambda tx: tx.apps.matching(query)):
                if app is None or row.id == app:
                    shown = known[_key(row.id)] = self._shown(row)
                    for event in _appeared(shown):
                        yield event
            while True:
                changed = await self._next(watch)
                for event in _repeated(known) if changed is None else _events(known, changed):
                    yield event

    async def _next(self, watch: Watch[_App]) -> Mapping[topics.Key, _App] | None:
        """None if nothing has changed for so long that what is known is said again. A deleted app has an empty
        message."""
        try:
            async with asyncio.timeout(self._repeat_seconds):
                return await watch.next()
        except TimeoutError:
            return None

    async def _read(self, _topic: topics.Topic, keys: Collection[topics.Key]) -> Mapping[topics.Key, _App]:
        def look(tx: Transaction) -> dict[topics.Key, AppRow | None]:
            return {key: tx.apps.get(AppId(*key)) for key in keys}

        rows = await self._database.read(look)
        return {
            key: _App() if row is None or row.wanted == Wanted.DELETED else self._shown(row)
            for key, row in rows.items()
        }


def _target(request: pb.WatchRequest) -> tuple[topics.Topic, AppQuery, AppId | None]:
    match request.WhichOneof("target"):
        case "app_id":
            app = app_id_from(request.app_id, "app_id")
            return topics.app(app), AppQuery(project=app.project, domain=app.domain), app
        case "project":
            project, domain = project_of(request.project, "project")
            if not project or not domain:
                raise InvalidArgument("project.name and project.domain are both required to watch a project")
            return topics.apps(ProjectId(project, domain)), AppQuery(project=project, domain=domain), None
        case _:
            return topics.ALL_APPS, AppQuery(), None


def _key(app: AppId) -> topics.Key:
    return (app.project, app.domain, app.name)


def _appeared(app: _App) -> list[pb.WatchResponse]:
    events = [pb.WatchResponse(create_event=pb.CreateEvent(app=app))]
    return [*events, _updated(app)] if app.status.conditions else events


def _updated(app: _App, old: _App | None = None) -> pb.WatchResponse:
    return pb.WatchResponse(update_event=pb.UpdateEvent(updated_app=app, old_app=old))


def _events(known: dict[topics.Key, _App], changed: Mapping[topics.Key, _App]) -> list[pb.WatchResponse]:
    events: list[pb.WatchResponse] = []
    for key, app in changed.items():
        old = known.get(key)
        if not app.HasField("metadata"):
            if old is not None:
                del known[key]
                events.append(pb.WatchResponse(delete_event=pb.DeleteEvent(app=old)))
            continue
        known[key] = app
        events += _appeared(app) if old is None else ([] if old == app else [_updated(app, old)])
    return events


def _repeated(known: Mapping[topics.Key, _App]) -> list[pb.WatchResponse]:
    return [_updated(app) for app in known.values()] if len(known) == 1 else []
