"""UploadInputs: the inputs of a run that is about to be created, stored and hashed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection

from flyteidl2.common import run_pb2
from flyteidl2.dataproxy import dataproxy_service_pb2 as pb
from flyteidl2.task import common_pb2, task_definition_pb2

from flyte_binary.dataproxy.ports import RunBases, Tasks
from flyte_binary.dataproxy.require import KnownProjects
from flyte_binary.domain import locations
from flyte_binary.domain.errors import InvalidArgument, NotFound
from flyte_binary.domain.ids import ProjectId, TaskId
from flyte_binary.domain.inputs_hash import inputs_hash
from flyte_binary.domain.names import check_text
from flyte_binary.storage.store import ObjectStore
from flyte_binary.storage.uris import join

_LARGE_BYTES = 256 * 1024
"""From here on, hashing and serialising take milliseconds and leave the event loop."""


class InputUploads:
    def __init__(self, store: ObjectStore, projects: KnownProjects, tasks: Tasks, bases: RunBases) -> None:
        self._store = store
        self._projects = projects
        self._tasks = tasks
        self._bases = bases

    async def upload(self, request: pb.UploadInputsRequest) -> pb.UploadInputsResponse:
        """The same inputs twice are one object.

        Its folder is named after *all* that it holds and not after the hash, which leaves out ignored
        inputs and the context: a second run whose inputs differ only there must not overwrite what the
        first one, still queued, is going to read.
        """
        scope = _scope(request)
        self._require_in_store("base_dir", request.base_dir)
        await self._projects.require(scope, field=request.WhichOneof("id") or "")
        base = request.base_dir or await self._base(scope)
        task = await self._task(request)
        ignored = frozenset(task.task_template.metadata.cache_ignore_input_vars)
        content, digest, hashed = await _serialised(request.inputs, ignored)
        folder = join(base, locations.OFFLOADED, scope.project, scope.domain, digest)
        await self._store.put(join(folder, locations.INPUTS), content)
        return pb.UploadInputsResponse(offloaded_input_data=run_pb2.OffloadedInputData(uri=folder, inputs_hash=hashed))

    async def _base(self, scope: ProjectId) -> str:
        """Where the run will put what is its own, if it does not say so itself."""
        base = await self._bases.of(scope)
        # It was inside when it was set; the store may be another one since.
        self._require_in_store("settings.run.run_base_dir", base)
        return base or self._store.base_uri

    def _require_in_store(self, field: str, uri: str) -> None:
        if uri and not self._store.covers(uri):
            raise InvalidArgument(f"{field} {uri!r} is outside the folders that this server stores in")

    async def _task(self, request: pb.UploadInputsRequest) -> task_definition_pb2.TaskSpec:
        match request.WhichOneof("task"):
            case "task_spec":
                return request.task_spec
            case "task_id":
                return await self._deployed(TaskId.from_proto(request.task_id))
            case "trigger_name":
                trigger = request.trigger_name
                for part in ("project", "domain", "task_name", "name"):
                    check_text(f"trigger_name.{part}", getattr(trigger, part))
                task = await self._tasks.of_trigger(trigger)
                if task is None:
                    raise NotFound(f'trigger "{trigger.name}" of task "{trigger.task_name}" not found')
                return await self._deployed(task)
            case _:
                raise InvalidArgument("one of task_id, task_spec and trigger_name is required")

    async def _deployed(self, task: TaskId) -> task_definition_pb2.TaskSpec:
        spec = await self._tasks.spec(task)
        if spec is None:
            raise NotFound(f'task "{task.name}" in version "{task.version}" not found in {task.project}/{task.domain}')
        return spec


def _scope(request: pb.UploadInputsRequest) -> ProjectId:
    match request.WhichOneof("id"):
        case "run_id":
            return ProjectId(request.run_id.project, request.run_id.domain)
        case "project_id":
            return ProjectId(request.project_id.name, request.project_id.domain)
        case _:
            raise InvalidArgument("one of run_id and project_id is required")


async def _serialised(inputs: common_pb2.Inputs, ignored: Collection[str]) -> tuple[bytes, str, str]:
    """The bytes to store, their digest, and the hash for cache keys."""

    def work() -> tuple[bytes, str, str]:
        content = inputs.SerializeToString(deterministic=True)
        return content, hashlib.sha256(content).hexdigest(), inputs_hash(inputs, ignored=ignored)

    return work() if inputs.ByteSize() < _LARGE_BYTES else await asyncio.to_thread(work)
