"""ListRuns and ListActions."""

from __future__ import annotations

from collections.abc import Sequence

from flyteidl2.common import list_pb2
from flyteidl2.workflow import run_definition_pb2, run_service_pb2

from flyte_binary.db.database import Database
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.run_listing import Found, RunScope, list_actions, list_runs, rows_of
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.filters import Condition, Field, conditions_from_proto, orders_from_proto
from flyte_binary.domain.ids import ProjectId
from flyte_binary.domain.names import check_text
from flyte_binary.domain.pages import Page, page_from_proto, token_after
from flyte_binary.runs.fields import ACTION_FIELDS, ACTION_TIES, DEFAULT_ORDER, RUN_TIES
from flyte_binary.runs.requests import project_id_from, run_id_from
from flyte_binary.runs.shown import Shown
from flyte_binary.runs.view.action import action_of, run_of


class RunLists:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._runs: Shown[run_definition_pb2.Run] = Shown(run_of)
        self._actions: Shown[run_definition_pb2.Action] = Shown(action_of)

    async def runs(self, request: run_service_pb2.ListRunsRequest) -> run_service_pb2.ListRunsResponse:
        """Raises `InvalidArgument` naming the field."""
        scope = _scope_of(request)
        conditions, page = _asked(request.request, RUN_TIES)

        def look(tx: Transaction) -> tuple[Found, list[ActionRow]]:
            found = list_runs(tx.connection, scope, conditions, page)
            return found, rows_of(tx.connection, self._runs.missing(found.keys))

        found, rows = await self._database.read(look)
        runs = self._runs.messages(found.keys, rows)
        return run_service_pb2.ListRunsResponse(runs=runs, token=_token(found, page))

    async def actions(self, request: run_service_pb2.ListActionsRequest) -> run_service_pb2.ListActionsResponse:
        """Of a run that does not exist: none."""
        run = run_id_from(request)
        conditions, page = _asked(request.request, ACTION_TIES)

        def look(tx: Transaction) -> tuple[Found, list[ActionRow]]:
            found = list_actions(tx.connection, run, conditions, page)
            return found, rows_of(tx.connection, self._actions.missing(found.keys))

        found, rows = await self._database.read(look)
        actions = self._actions.messages(found.keys, rows)
        return run_service_pb2.ListActionsResponse(actions=actions, token=_token(found, page))


def _asked(request: list_pb2.ListRequest, ties: Sequence[Field]) -> tuple[list[Condition], Page]:
    conditions = conditions_from_proto(request.filters, ACTION_FIELDS, labels=True)
    orders = orders_from_proto(request, ACTION_FIELDS, default=DEFAULT_ORDER, ties=ties)
    return conditions, page_from_proto(request, orders)


def _token(found: Found, page: Page) -> str:
    return "" if found.last is None else token_after(found.last, page.orders)


def _scope_of(request: run_service_pb2.ListRunsRequest) -> RunScope:
    paused = request.paused_actions_only
    match request.WhichOneof("scope_by"):
        case "project_id":
            return RunScope(project=project_id_from(request.project_id), paused_only=paused)
        case "task_name":
            task = request.task_name
            _check_parts("task_name", task.project, task.domain, task.name)
            return RunScope(task_project=task.project, task_domain=task.domain, task_name=task.name, paused_only=paused)
        case "task_id":
            version = request.task_id
            _check_parts("task_id", version.project, version.domain, version.name)
            check_text("task_id.version", version.version, required=True)
            return RunScope(
                task_project=version.project,
                task_domain=version.domain,
                task_name=version.name,
                task_version=version.version,
                paused_only=paused,
            )
        case "trigger_name":
            trigger = request.trigger_name
            _check_parts("trigger_name", trigger.project, trigger.domain, trigger.name)
            check_text("trigger_name.task_name", trigger.task_name)
            return RunScope(
                project=ProjectId(trigger.project, trigger.domain),
                trigger_task_name=trigger.task_name,
                trigger_name=trigger.name,
                paused_only=paused,
            )
        case _:
            return RunScope(paused_only=paused)


def _check_parts(field: str, project: str, domain: str, name: str) -> None:
    check_text(f"{field}.project", project, required=True)
    check_text(f"{field}.domain", domain, required=True)
    check_text(f"{field}.name", name, required=True)
