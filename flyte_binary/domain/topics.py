"""Names of what can change, for hints from a commit to the watches and work queues that care.

A hint is a topic and a key, both plain tuples of text so that they can travel between servers. It
says "read this again" and carries no data.
"""

from __future__ import annotations

from flyte_binary.domain.ids import AppId, ProjectId, RunId

Topic = tuple[str, ...]
Key = tuple[str, ...]

WORK: Topic = ("work",)
"""Keys: (project, domain, run, action) of each action that changed; read by the executor."""

CACHE: Topic = ("cache",)
"""Keys: (stored key,) whose reservation was released or whose entry appeared."""

TRIGGERS: Topic = ("triggers",)
"""Keys: (project, domain, task name, trigger name) of each trigger that was deployed, changed or deleted."""

ARTIFACT_FIRINGS: Topic = ("artifact-firings",)
"""Keys: (project, domain, task name, trigger name) of each trigger that owes a run to a version of an artifact."""

APP_WORK: Topic = ("app-work",)
"""Keys: (project, domain, name) of each app of which something else is wanted; read by the passes over apps."""

ALL_APPS: Topic = ("apps",)
"""Keys: (project, domain, name) of each app of which anything changed, its status included."""

SHARDS: Topic = ("shards",)
"""One key: shards were given back for others to take."""


def run(run_id: RunId) -> Topic:
    """Keys: (action name,) of each action of the run that changed."""
    return ("run", run_id.project, run_id.domain, run_id.name)


def children(run_id: RunId, parent: str) -> Topic:
    """Keys: (action name,) of the action `parent` itself and of its children that changed."""
    return ("children", run_id.project, run_id.domain, run_id.name, parent)


def runs(project: ProjectId) -> Topic:
    """Keys: (run name,) of each run of the project and domain whose root action changed."""
    return ("runs", project.project, project.domain)


ALL_RUNS: Topic = ("runs",)
"""Keys: (project, domain, run name): the same for a watch over all projects."""


def apps(project: ProjectId) -> Topic:
    """Keys: (project, domain, name), as for `ALL_APPS`, of the apps of the project and domain."""
    return ("apps", project.project, project.domain)


def app(app_id: AppId) -> Topic:
    """The one key of `ALL_APPS` that is this app's."""
    return ("app", app_id.project, app_id.domain, app_id.name)
