"""AppService.List."""

from __future__ import annotations

from collections.abc import Callable

from flyteidl2.app import app_definition_pb2
from flyteidl2.app import app_payload_pb2 as pb
from flyteidl2.common import identifier_pb2

from flyte_binary.db.apps import AppQuery, AppRow, ConsumedArtifact
from flyte_binary.db.database import Database
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.filters import Field, Kind, Order, conditions_from_proto, fields, orders_from_proto
from flyte_binary.domain.names import check_text
from flyte_binary.domain.pages import page_from_proto, token_after

Shown = Callable[[AppRow], app_definition_pb2.App]


def _phase(name: str) -> int | None:
    return dict(app_definition_pb2.Status.DeploymentStatus.items()).get(
        name if name.startswith("DEPLOYMENT_STATUS_") else f"DEPLOYMENT_STATUS_{name.upper()}"
    )


_KEY = tuple(Field(name, name) for name in ("project", "domain", "name"))
_CREATED_AT = Field("created_at", "created_at", Kind.TIME)
FIELDS = fields(
    *_KEY,
    Field("status_phase", "phase", Kind.NUMBER, _phase),
    Field("created_by", "created_by"),
    Field("revision", "revision", Kind.NUMBER),
    _CREATED_AT,
    Field("updated_at", "updated_at", Kind.TIME),
    Field("last_started_at", "started_at", Kind.TIME),
)
_NEWEST_FIRST = (Order(_CREATED_AT, True),)


class AppLists:
    def __init__(self, database: Database, shown: Shown) -> None:
        self._database = database
        self._shown = shown

    async def list(self, request: pb.ListRequest) -> pb.ListResponse:
        """Of the whole organisation or cluster: everything, since this server has one of each."""
        conditions = conditions_from_proto(request.request.filters, FIELDS)
        project, domain = _scope(request)
        query = AppQuery(project=project, domain=domain, artifact=_artifact(request), conditions=conditions)
        orders = orders_from_proto(request.request, FIELDS, default=_NEWEST_FIRST, ties=_KEY)
        page = page_from_proto(request.request, orders)

        def look(tx: Transaction) -> pb.ListResponse:
            found = tx.apps.list(query, page)
            token = "" if found.last is None else token_after(found.last, page.orders)
            count = tx.apps.count(query) if request.include_total_count else 0
            return pb.ListResponse(apps=[self._shown(row) for row in found.rows], token=token, total_count=count)

        return await self._database.read(look)


def _scope(request: pb.ListRequest) -> tuple[str, str]:
    if request.WhichOneof("filter_by") != "project":
        return "", ""
    return project_of(request.project, "project")


def project_of(message: identifier_pb2.ProjectIdentifier, field: str) -> tuple[str, str]:
    """Either may be empty: then it is no condition."""
    check_text(f"{field}.name", message.name)
    check_text(f"{field}.domain", message.domain)
    return message.name, message.domain


def _artifact(request: pb.ListRequest) -> ConsumedArtifact | None:
    if request.WhichOneof("filter_by") != "artifact":
        return None
    asked = request.artifact
    for name in ("project", "domain", "name", "version"):
        check_text(f"artifact.{name}", getattr(asked, name))
    return ConsumedArtifact(project=asked.project, domain=asked.domain, name=asked.name, version=asked.version)
