"""ListTasks and ListVersions."""

from __future__ import annotations

from flyteidl2.task import task_service_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.tasks import FoundTasks
from flyte_binary.db.transaction import Transaction
from flyte_binary.db.trigger_rows import TriggerSummary
from flyte_binary.domain.filters import (
    Condition,
    Field,
    Kind,
    Op,
    Order,
    conditions_from_proto,
    fields,
    orders_from_proto,
)
from flyte_binary.domain.ids import ProjectId, TaskId
from flyte_binary.domain.names import check_text
from flyte_binary.domain.pages import Page, page_from_proto, token_after
from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.runs.requests import project_id_from
from flyte_binary.runs.tasks.view import task_of

_PROJECT = Field("project", "project")
_DOMAIN = Field("domain", "domain")
_NAME = Field("name", "name")
_VERSION = Field("version", "version")
_DEPLOYED_BY = Field("deployed_by", "deployed_by")
_IS_ENTRYPOINT = Field("is_entrypoint", "is_entrypoint", Kind.BOOL)
_CREATED_AT = Field("created_at", "created_at", Kind.TIME)

TASK_FIELDS = fields(
    _PROJECT,
    _DOMAIN,
    _NAME,
    _VERSION,
    Field("environment", "environment"),
    Field("function_name", "function_name"),
    _DEPLOYED_BY,
    _CREATED_AT,
    Field("updated_at", "updated_at", Kind.TIME),
    Field("env_description", "env_description"),
    Field("short_description", "short_description"),
    Field("trigger_name", "trigger_name"),
    Field("total_triggers", "total_triggers", Kind.NUMBER),
    Field("active_triggers", "active_triggers", Kind.NUMBER),
)
VERSION_FIELDS = fields(_VERSION, _CREATED_AT)

_NEWEST_FIRST = (Order(_CREATED_AT, True),)


class TaskLists:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def tasks(self, request: task_service_pb2.ListTasksRequest) -> task_service_pb2.ListTasksResponse:
        """The latest version of each task. Raises `InvalidArgument` naming the field."""
        project = project_id_from(request.project_id) if request.WhichOneof("scope_by") == "project_id" else None
        conditions = conditions_from_proto(request.request.filters, TASK_FIELDS)
        conditions += [_known(item) for item in request.known_filters if item.WhichOneof("filter_by")]
        ties = (_PROJECT, _DOMAIN, _NAME)
        orders = orders_from_proto(request.request, TASK_FIELDS, default=_NEWEST_FIRST, ties=ties)
        page = page_from_proto(request.request, orders)

        def read(tx: Transaction) -> tuple[FoundTasks, dict[TaskId, TriggerSummary]]:
            found = tx.tasks.list_latest(project, conditions, page)
            return found, tx.triggers.summaries([row.id for row in found.rows])

        found, triggers = await self._database.read(read)
        return task_service_pb2.ListTasksResponse(
            tasks=[task_of(row, triggers.get(row.id)) for row in found.rows],
            token=_token(found, page),
            metadata=task_service_pb2.ListTasksResponse.ListTasksMetadata(
                total=found.total, filtered_total=found.filtered_total
            ),
        )

    async def versions(self, request: task_service_pb2.ListVersionsRequest) -> task_service_pb2.ListVersionsResponse:
        """Of a task that does not exist: none."""
        task = request.task_name
        for part in ("project", "domain", "name"):
            check_text(f"task_name.{part}", getattr(task, part), required=True)
        project = ProjectId(task.project, task.domain)
        conditions = conditions_from_proto(request.request.filters, VERSION_FIELDS)
        orders = orders_from_proto(request.request, VERSION_FIELDS, default=_NEWEST_FIRST, ties=(_VERSION,))
        page = page_from_proto(request.request, orders)
        found = await self._database.read(lambda tx: tx.tasks.list_versions(project, task.name, conditions, page))
        response = task_service_pb2.ListVersionsResponse(token=_token(found, page))
        for row in found.rows:
            item = response.versions.add(version=row.id.version, deployed_at=micros_to_proto(row.created_at))
            if row.deployed_by:
                item.deployed_by.user.id.subject = row.deployed_by
        return response


def _known(known: task_service_pb2.ListTasksRequest.KnownFilter) -> Condition:
    if known.WhichOneof("filter_by") == "is_entrypoint":
        return Condition(_IS_ENTRYPOINT, Op.EQUAL, (known.is_entrypoint,))
    check_text("known_filters.deployed_by", known.deployed_by)
    return Condition(_DEPLOYED_BY, Op.EQUAL, (known.deployed_by,))


def _token(found: FoundTasks, page: Page) -> str:
    return "" if found.last is None else token_after(found.last, page.orders)
