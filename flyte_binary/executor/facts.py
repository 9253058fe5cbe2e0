"""What a pass needs beside the row and never changes: the task's spec and the run's own settings."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

from flyteidl2.common import run_pb2
from flyteidl2.task import run_pb2 as task_run_pb2
from flyteidl2.task import task_definition_pb2

from flyte_binary.db.rows import ActionRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.settings import VALUE
from flyte_binary.domain.task_limits import Limits, Resources, limits_of, resources_of

_EVERYWHERE = task_run_pb2.CACHE_LOOKUP_SCOPE_GLOBAL

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    spec: task_definition_pb2.TaskSpec
    limits: Limits
    resources: Resources
    """By the task alone; see `resources_for`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    run_spec: task_run_pb2.RunSpec
    created_at: int
    spawned_by: RunId | None
    """The run in which `flyte.run` was called for this one."""
    shares_cache: bool = False
    """Looks for cached outputs of all projects, and leaves its own to them."""
    mirrors_limits: bool = False
    """By the settings of its project, limits of its tasks are what they request."""

    @property
    def overwrite_cache(self) -> bool:
        return self.run_spec.overwrite_cache or self.run_spec.cache_config.overwrite_cache


class Facts:
    """A bounded memory of both; used inside database operations and between them."""

    def __init__(self, *, cache_across_projects: bool = False, tasks: int = 512, runs: int = 2048) -> None:
        self._cache_across_projects = cache_across_projects
        self._tasks: _Recent[str, TaskFacts] = _Recent(tasks)
        self._runs: _Recent[RunId, RunFacts] = _Recent(runs)

    def task(self, tx: Transaction, row: ActionRow) -> TaskFacts | None:
        """None if the row refers to no spec, or to one that is not there."""
        digest = row.spec_digest
        if digest is None:
            return None
        found = self._tasks.get(digest)
        if found is not None:
            return found
        body = tx.specs.get(digest)
        if body is None:
            return None
        spec = task_definition_pb2.TaskSpec.FromString(body)
        made = TaskFacts(spec=spec, limits=limits_of(spec.task_template), resources=resources_of(spec.task_template))
        self._tasks.put(digest, made)
        return made

    def run(self, tx: Transaction, run: RunId) -> RunFacts | None:
        found = self._runs.get(run)
        if found is not None:
            return found
        root = tx.actions.get(run.root())
        if root is None:
            return None
        run_spec = task_run_pb2.RunSpec.FromString(root.run_spec or b"")
        made = RunFacts(
            run_spec=run_spec,
            created_at=root.created_at,
            spawned_by=_spawned_by(root),
            mirrors_limits=_mirrors_limits(tx, run),
            shares_cache=self._cache_across_projects and run_spec.cache_config.cache_lookup_scope == _EVERYWHERE,
        )
        self._runs.put(run, made)
        return made


def resources_for(task: TaskFacts, run: RunFacts) -> Resources:
    """What a task of the run asks for, by the settings that the run was created under."""
    spec = run.run_spec
    if not run.mirrors_limits and not spec.default_settings.HasField("task_resource_defaults"):
        return task.resources
    defaults = spec.default_settings.task_resource_defaults
    return resources_of(task.spec.task_template, defaults, mirror_limits=run.mirrors_limits)


def _mirrors_limits(tx: Transaction, run: RunId) -> bool:
    settings = tx.settings.resolved(run.domain, run.project)
    if settings is None:
        return False
    mirror = settings.task_resource.mirror_limits_request
    return mirror.state == VALUE and mirror.bool_value


def _spawned_by(root: ActionRow) -> RunId | None:
    if root.relation is None:
        return None
    relation = run_pb2.Relation.FromString(root.relation)
    if relation.relation_type != run_pb2.RELATION_TYPE_SPAWN:
        return None
    return RunId.from_proto(relation.related_to)


class _Recent(Generic[K, V]):
    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._values[key] = value
        if len(self._values) > self._size:
            self._values.popitem(last=False)
