"""What an operation gets: the repositories over one connection, and where it notes what it changed.

Operations are synchronous, re-runnable functions without I/O besides the connection, so that the
same function serves SQLite in the writer thread and PostgreSQL through SQLAlchemy's `run_sync`.
"""

from __future__ import annotations

from functools import cached_property

from sqlalchemy import Connection

from flyte_binary.db.actions import Actions
from flyte_binary.db.app_replicas import AppReplicas
from flyte_binary.db.apps import Apps
from flyte_binary.db.artifact_firings import ArtifactFirings
from flyte_binary.db.artifacts import Artifacts
from flyte_binary.db.attempts import Attempts
from flyte_binary.db.cache import CacheEntries
from flyte_binary.db.events import Events
from flyte_binary.db.leases import Leases
from flyte_binary.db.projects import Projects
from flyte_binary.db.retention import Retention
from flyte_binary.db.secrets import Secrets
from flyte_binary.db.settings import SettingsDocuments
from flyte_binary.db.tasks import Tasks, TaskSpecs
from flyte_binary.db.triggers import Triggers
from flyte_binary.domain import topics
from flyte_binary.domain.ids import ActionId, AppId, ProjectId


class Transaction:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.changes: set[tuple[topics.Topic, topics.Key]] = set()
        """Hints to publish after the commit; dropped with a rollback."""

    def changed(self, topic: topics.Topic, key: topics.Key) -> None:
        self.changes.add((topic, key))

    def changed_action(self, action: ActionId, parent: str | None, *, wake: bool = True) -> None:
        """Wake the executor, the watches of the run and of the parent; for a root, those of runs.

        `wake=False` is for the executor's own pass over this very action, which goes on by itself.
        """
        run = action.run_id
        if wake:
            self.changed(topics.WORK, (action.project, action.domain, action.run, action.name))
        self.changed(topics.run(run), (action.name,))
        self.changed(topics.children(run, action.name), (action.name,))
        if parent:
            self.changed(topics.children(run, parent), (action.name,))
        if action.is_root:
            self.changed(topics.runs(ProjectId(action.project, action.domain)), (action.run,))
            self.changed(topics.ALL_RUNS, (action.project, action.domain, action.run))

    def changed_app(self, app: AppId, *, wanted: bool) -> None:
        """Tell the watches of the app and, if it is `wanted` otherwise than before, the passes over it."""
        key = (app.project, app.domain, app.name)
        if wanted:
            self.changed(topics.APP_WORK, key)
        for topic in (topics.app(app), topics.apps(ProjectId(app.project, app.domain)), topics.ALL_APPS):
            self.changed(topic, key)

    @cached_property
    def actions(self) -> Actions:
        return Actions(self.connection)

    @cached_property
    def attempts(self) -> Attempts:
        return Attempts(self.connection)

    @cached_property
    def events(self) -> Events:
        return Events(self.connection)

    @cached_property
    def specs(self) -> TaskSpecs:
        return TaskSpecs(self.connection)

    @cached_property
    def tasks(self) -> Tasks:
        return Tasks(self.connection)

    @cached_property
    def projects(self) -> Projects:
        return Projects(self.connection)

    @cached_property
    def retention(self) -> Retention:
        return Retention(self.connection)

    @cached_property
    def leases(self) -> Leases:
        return Leases(self.connection)

    @cached_property
    def cache(self) -> CacheEntries:
        return CacheEntries(self.connection)

    @cached_property
    def triggers(self) -> Triggers:
        return Triggers(self.connection)

    @cached_property
    def settings(self) -> SettingsDocuments:
        return SettingsDocuments(self.connection)

    @cached_property
    def artifacts(self) -> Artifacts:
        return Artifacts(self.connection)

    @cached_property
    def artifact_firings(self) -> ArtifactFirings:
        return ArtifactFirings(self.connection)

    @cached_property
    def secrets(self) -> Secrets:
        return Secrets(self.connection)

    @cached_property
    def apps(self) -> Apps:
        return Apps(self.connection)

    @cached_property
    def app_replicas(self) -> AppReplicas:
        return AppReplicas(self.connection)
