"""DeployTask: the same version again replaces what was deployed, silently (reference backend behaviour)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from flyteidl2.task import task_definition_pb2, task_service_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.rows import TaskRow
from flyte_binary.db.tasks import digest_of
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import TaskId
from flyte_binary.domain.names import check_text, cut, function_name_of
from flyte_binary.rpc.identity import Caller
from flyte_binary.runs.callers import stored_identity_of
from flyte_binary.runs.projects.scope import require_domain, require_project
from flyte_binary.runs.requests import task_id_from
from flyte_binary.runs.triggers import changes
from flyte_binary.runs.triggers.draft import TriggerDraft, draft_of_task
from flyte_binary.runs.triggers.fit import require_inputs
from flyte_binary.storage.store import ObjectStore

DESCRIPTION_LIMIT_BYTES = 255
LONG_DESCRIPTION_LIMIT_BYTES = 2048


class TaskDeployer:
    def __init__(self, database: Database, store: ObjectStore, clock: Clock, domains: Collection[str]) -> None:
        self._database = database
        self._store = store
        self._clock = clock
        self._domains = domains

    async def deploy(self, request: task_service_pb2.DeployTaskRequest, caller: Caller) -> None:
        """Raises `InvalidArgument` naming the field, `NotFound` for the project or the domain."""
        task = task_id_from(request)
        if not request.HasField("spec") or not request.spec.HasField("task_template"):
            raise InvalidArgument("spec.task_template is required")
        require_domain(task.domain, self._domains)
        spec = _trimmed(request.spec)
        drafts = self._drafts(task, spec, request.triggers)
        digest, body = digest_of(spec)
        now = self._clock.now()
        row = _row_of(task, spec, digest, caller.subject, now)
        by = stored_identity_of(caller)

        def operation(tx: Transaction) -> None:
            require_project(tx, task.project)
            tx.specs.put(digest, body, at=now)
            tx.tasks.upsert(row)
            changes.prune(tx, task, (draft.id.name for draft in drafts), by=by, at=now)
            # By name, so that everybody writes them in one order; each a moment later than the one before it in the
            # request, which is the order that lists show.
            for place, draft in sorted(enumerate(drafts), key=lambda each: each[1].id):
                changes.deploy(tx, draft, with_task=True, by=by, at=now + place)

        await self._database.write(operation)

    def _drafts(
        self,
        task: TaskId,
        spec: task_definition_pb2.TaskSpec,
        triggers: Iterable[task_definition_pb2.TaskTrigger],
    ) -> list[TriggerDraft]:
        drafts: dict[str, TriggerDraft] = {}
        for trigger in triggers:
            draft = draft_of_task(task, trigger, self._store)
            require_inputs(draft, spec)
            if draft.id.name in drafts:
                raise InvalidArgument(f"triggers: {draft.id.name!r} is there twice")
            drafts[draft.id.name] = draft
        return list(drafts.values())


def _trimmed(spec: task_definition_pb2.TaskSpec) -> task_definition_pb2.TaskSpec:
    """A copy with its descriptions cut to what is stored, whole characters only."""
    check_text("spec.short_name", spec.short_name)
    check_text("spec.environment.name", spec.environment.name)
    trimmed = task_definition_pb2.TaskSpec()
    trimmed.CopyFrom(spec)
    if trimmed.environment.description:
        trimmed.environment.description = cut(trimmed.environment.description, DESCRIPTION_LIMIT_BYTES)
    if trimmed.documentation.short_description:
        short = trimmed.documentation.short_description
        trimmed.documentation.short_description = cut(short, DESCRIPTION_LIMIT_BYTES)
    if trimmed.documentation.long_description:
        long = trimmed.documentation.long_description
        trimmed.documentation.long_description = cut(long, LONG_DESCRIPTION_LIMIT_BYTES)
    return trimmed


def _row_of(task: TaskId, spec: task_definition_pb2.TaskSpec, digest: str, deployed_by: str, now: int) -> TaskRow:
    environment = spec.environment
    check_text("spec.environment.description", environment.description)
    check_text("spec.documentation.short_description", spec.documentation.short_description)
    return TaskRow(
        id=task,
        environment=environment.name,
        function_name=function_name_of(task.name, environment.name),
        env_description=environment.description,
        short_description=spec.documentation.short_description,
        deployed_by=deployed_by,
        is_entrypoint=spec.task_template.metadata.is_entrypoint,
        spec_digest=digest,
        created_at=now,
        updated_at=now,
    )
