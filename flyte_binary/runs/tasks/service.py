"""TaskService: deployed tasks."""

from __future__ import annotations

from collections.abc import Collection

from flyteidl2.task import task_definition_pb2
from flyteidl2.task import task_service_pb2 as pb

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.rows import TaskRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.db.trigger_rows import TriggerSummary
from flyte_binary.domain.errors import NotFound
from flyte_binary.rpc.identity import RequestContext
from flyte_binary.runs.requests import task_id_from
from flyte_binary.runs.tasks.deploy import TaskDeployer
from flyte_binary.runs.tasks.lists import TaskLists
from flyte_binary.runs.tasks.view import metadata_of
from flyte_binary.storage.store import ObjectStore


class TaskService:
    def __init__(self, *, database: Database, store: ObjectStore, clock: Clock, domains: Collection[str]) -> None:
        """`domains` are the ids of those that every project has."""
        self._database = database
        self._deployer = TaskDeployer(database, store, clock, domains)
        self._lists = TaskLists(database)

    async def deploy_task(self, request: pb.DeployTaskRequest, context: RequestContext) -> pb.DeployTaskResponse:
        await self._deployer.deploy(request, context.caller)
        return pb.DeployTaskResponse()

    async def get_task_details(
        self, request: pb.GetTaskDetailsRequest, context: RequestContext
    ) -> pb.GetTaskDetailsResponse:
        task = task_id_from(request)

        def read(tx: Transaction) -> tuple[TaskRow, bytes, TriggerSummary | None]:
            row = tx.tasks.get(task)
            spec = None if row is None else tx.specs.get(row.spec_digest)
            if row is None or spec is None:
                raise NotFound(f"task not found: {task}")
            return row, spec, tx.triggers.summary(task)

        row, spec, triggers = await self._database.point(read)
        details = task_definition_pb2.TaskDetails(
            task_id=row.id.to_proto(),
            metadata=metadata_of(row, triggers),
            spec=task_definition_pb2.TaskSpec.FromString(spec),
        )
        return pb.GetTaskDetailsResponse(details=details)

    async def list_tasks(self, request: pb.ListTasksRequest, context: RequestContext) -> pb.ListTasksResponse:
        return await self._lists.tasks(request)

    async def list_versions(self, request: pb.ListVersionsRequest, context: RequestContext) -> pb.ListVersionsResponse:
        return await self._lists.versions(request)
