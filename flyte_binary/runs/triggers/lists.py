"""ListTriggers and GetTriggerRevisionHistory."""

from __future__ import annotations

from flyteidl2.task import common_pb2
from flyteidl2.trigger import trigger_definition_pb2
from flyteidl2.trigger import trigger_service_pb2 as pb

from flyte_binary.db.database import Database
from flyte_binary.db.trigger_rows import TriggerScope
from flyte_binary.domain.filters import Field, Kind, Order, conditions_from_proto, fields, orders_from_proto
from flyte_binary.domain.names import check_text
from flyte_binary.domain.pages import page_from_proto, token_after
from flyte_binary.runs.requests import project_id_from
from flyte_binary.runs.triggers.draft import trigger_id_from
from flyte_binary.runs.triggers.view import revision_of, trigger_of


def _automation_type(name: str) -> int | None:
    return dict(common_pb2.TriggerAutomationSpecType.items()).get(_full(name, "TYPE_"))


def _action(name: str) -> int | None:
    return dict(trigger_definition_pb2.TriggerRevisionAction.items()).get(_full(name, "TRIGGER_REVISION_ACTION_"))


def _active(name: str) -> int | None:
    return {"true": 1, "false": 0}.get(name.lower())


def _full(name: str, prefix: str) -> str:
    return name if name.startswith(prefix) else f"{prefix}{name.upper()}"


_NAME_PARTS = tuple(Field(name, name) for name in ("project", "domain", "task_name", "name"))
_ACTIVE = Field("active", "active", Kind.NUMBER, _active)
_DEPLOYED_AT = Field("deployed_at", "deployed_at", Kind.TIME)
_UPDATED_AT = Field("updated_at", "updated_at", Kind.TIME)
_REVISION = Field("revision", "revision", Kind.NUMBER)

TRIGGER_FIELDS = fields(
    *_NAME_PARTS,
    _ACTIVE,
    _DEPLOYED_AT,
    _UPDATED_AT,
    Field("task_version", "task_version"),
    Field("automation_type", "automation_type", Kind.NUMBER, _automation_type),
)
REVISION_FIELDS = fields(_REVISION, _DEPLOYED_AT, _UPDATED_AT, Field("action", "action", Kind.NUMBER, _action))

_ACTIVE_FIRST = (Order(_ACTIVE, True), Order(_UPDATED_AT, True))
_NEWEST_FIRST = (Order(_REVISION, True),)


class TriggerLists:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def triggers(self, request: pb.ListTriggersRequest) -> pb.ListTriggersResponse:
        """Those that are not deleted. Raises `InvalidArgument` naming the field."""
        scope = _scope_of(request)
        conditions = conditions_from_proto(request.request.filters, TRIGGER_FIELDS)
        orders = orders_from_proto(request.request, TRIGGER_FIELDS, default=_ACTIVE_FIRST, ties=_NAME_PARTS)
        page = page_from_proto(request.request, orders)
        found = await self._database.read(lambda tx: tx.triggers.list(scope, conditions, page))
        token = "" if found.last is None else token_after(found.last, page.orders)
        return pb.ListTriggersResponse(triggers=[trigger_of(row) for row in found.rows], token=token)

    async def history(self, request: pb.GetTriggerRevisionHistoryRequest) -> pb.GetTriggerRevisionHistoryResponse:
        """Also of a deleted trigger; of one that never was: nothing."""
        trigger = trigger_id_from(request.name)
        conditions = conditions_from_proto(request.request.filters, REVISION_FIELDS)
        orders = orders_from_proto(request.request, REVISION_FIELDS, default=_NEWEST_FIRST, ties=(_REVISION,))
        page = page_from_proto(request.request, orders)
        found = await self._database.read(lambda tx: tx.triggers.history(trigger, conditions, page))
        token = "" if found.last is None else token_after(found.last, page.orders)
        return pb.GetTriggerRevisionHistoryResponse(triggers=[revision_of(row) for row in found.rows], token=token)


def _scope_of(request: pb.ListTriggersRequest) -> TriggerScope:
    match request.WhichOneof("scope_by"):
        case "project_id":
            project = project_id_from(request.project_id)
            return TriggerScope(project=project.project, domain=project.domain)
        case "task_name":
            task = request.task_name
            _check("task_name", project=task.project, domain=task.domain, name=task.name)
            return TriggerScope(project=task.project, domain=task.domain, task_name=task.name)
        case "task_id":
            version = request.task_id
            parts = {"project": version.project, "domain": version.domain, "name": version.name}
            _check("task_id", **parts, version=version.version)
            return TriggerScope(
                project=version.project,
                domain=version.domain,
                task_name=version.name,
                task_version=version.version,
            )
        case _:
            return TriggerScope()


def _check(field: str, **parts: str) -> None:
    for name, value in parts.items():
        check_text(f"{field}.{name}", value, required=True)
