"""ProjectService: projects, each with the configured domains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flyteidl2.common import list_pb2
from flyteidl2.project import project_service_pb2 as pb
from flyteidl2.task import run_pb2

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.rows import ProjectRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import AlreadyExists, InvalidArgument, NotFound
from flyte_binary.domain.filter_text import conditions_from_text
from flyte_binary.domain.filters import INT64_LIMIT, Condition, Field, Kind, Op, Order, fields, orders_from_proto
from flyte_binary.domain.names import check_project_id, check_text
from flyte_binary.domain.pages import page_from_token, token_after
from flyte_binary.domain.wire_enums import project_state_to_wire
from flyte_binary.rpc.identity import RequestContext

DESCRIPTION_LIMIT = 300


def _state(name: str) -> int | None:
    known = dict(pb.ProjectState.items())
    return known.get(name, known.get(f"PROJECT_STATE_{name.upper()}"))


_IDENTIFIER = Field("identifier", "identifier")
_STATE = Field("state", "state", Kind.NUMBER, _state)
_CREATED_AT = Field("created_at", "created_at", Kind.TIME)

PROJECT_FIELDS = fields(
    _IDENTIFIER,
    Field("name", "name"),
    Field("description", "description"),
    _STATE,
    _CREATED_AT,
    Field("updated_at", "updated_at", Kind.TIME),
)

_NOT_ARCHIVED = Condition(_STATE, Op.NOT_EQUAL, (int(pb.PROJECT_STATE_ARCHIVED),))


class ProjectService:
    def __init__(self, *, database: Database, clock: Clock, domains: Sequence[pb.Domain]) -> None:
        """`domains` are shown in every project, in this order."""
        self._database = database
        self._clock = clock
        self._domains = domains

    async def create_project(
        self, request: pb.CreateProjectRequest, context: RequestContext
    ) -> pb.CreateProjectResponse:
        row = self._checked(request.project)
        check_project_id("project.id", row.identifier)
        if not await self._database.write(lambda tx: tx.projects.insert(row)):
            raise AlreadyExists(f"project already exists: {row.identifier}")
        return pb.CreateProjectResponse()

    async def update_project(
        self, request: pb.UpdateProjectRequest, context: RequestContext
    ) -> pb.UpdateProjectResponse:
        """Name, description, labels and state are replaced as a whole; what is omitted becomes empty."""
        row = self._checked(request.project)
        if not await self._database.write(lambda tx: tx.projects.replace(row)):
            raise NotFound(f"project not found: {row.identifier}")
        return pb.UpdateProjectResponse()

    async def get_project(self, request: pb.GetProjectRequest, context: RequestContext) -> pb.GetProjectResponse:
        check_text("id", request.id, required=True)
        row = await self._database.point(lambda tx: tx.projects.get(request.id))
        if row is None:
            raise NotFound(f"project not found: {request.id}")
        return pb.GetProjectResponse(project=self._project_of(row))

    async def list_projects(self, request: pb.ListProjectsRequest, context: RequestContext) -> pb.ListProjectsResponse:
        """Limit 0 is all of them. Without a filter archived projects are left out."""
        conditions = conditions_from_text(request.filters, PROJECT_FIELDS) or [_NOT_ARCHIVED]
        sorting = list_pb2.ListRequest(sort_by=request.sort_by)
        orders = orders_from_proto(sorting, PROJECT_FIELDS, default=[Order(_CREATED_AT)], ties=[_IDENTIFIER])
        page = page_from_token(request.token, orders, limit=request.limit or INT64_LIMIT - 1)
        found = await self._database.read(lambda tx: tx.projects.list(conditions, page))
        token = "" if found.last is None else token_after(found.last, orders)
        projects = pb.Projects(projects=[self._project_of(row) for row in found.rows], token=token)
        return pb.ListProjectsResponse(projects=projects)

    def _checked(self, project: pb.Project) -> ProjectRow:
        check_text("project.id", project.id, required=True, limit=63)
        check_text("project.name", project.name)
        check_text("project.description", project.description, limit=DESCRIPTION_LIMIT)
        if project.state not in pb.ProjectState.values():
            raise InvalidArgument(f"project.state: {project.state} is no state of a project")
        now = self._clock.now()
        return ProjectRow(
            identifier=project.id,
            name=project.name,
            description=project.description,
            labels=project.labels.SerializeToString() if project.HasField("labels") else None,
            state=project.state,
            created_at=now,
            updated_at=now,
        )

    def _project_of(self, row: ProjectRow) -> pb.Project:
        project = pb.Project(
            id=row.identifier,
            name=row.name,
            description=row.description,
            state=project_state_to_wire(row.state),
            domains=self._domains,
        )
        if row.labels is not None:
            project.labels.CopyFrom(run_pb2.Labels.FromString(row.labels))
        return project


def seed_projects(tx: Transaction, names: Iterable[str], at: int) -> list[str]:
    """Create those of the projects that do not exist, and leave the others alone; returns the ones that are new."""
    return [
        name
        for name in names
        if name and tx.projects.insert(ProjectRow(identifier=name, name=name, created_at=at, updated_at=at))
    ]
