"""What requests about artifacts ask for, checked before anything is looked up or written."""

from __future__ import annotations

import re
from collections.abc import Iterable

from flyteidl2.artifact import artifact_pb2
from flyteidl2.common import identifier_pb2, list_pb2

from flyte_binary.db.artifacts import METADATA, PARTITION, ArtifactName, ArtifactQuery, AttributeCondition
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.filters import Field, Fields, Kind, Order, conditions_from_proto, fields
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.names import check_text
from flyte_binary.rpc.require import require_action_id
from flyte_binary.runs.requests import project_id_from

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_PARENTS = 32
_REFERENCE_LIMIT = 1024
_PREFIXES = {"user_metadata.": METADATA, "partition.": PARTITION}

NAME, VERSION = Field("name", "name"), Field("version", "version")
CREATED_AT = Field("created_at", "created_at", Kind.TIME)
FIELDS: Fields = fields(
    NAME,
    VERSION,
    CREATED_AT,
    Field("source_run", "source_run"),
    Field("source_action", "source_action"),
    Field("source_external_ref", "source_external_ref"),
    Field("time_partition", "time_partition", Kind.TIME),
)
NEWEST_FIRST = (Order(CREATED_AT, True),)
TIES = (NAME, VERSION)


def name_from(message: artifact_pb2.ArtifactName, field: str) -> ArtifactName:
    """Raises `InvalidArgument` naming the part of `field`."""
    check_text(f"{field}.project", message.project, required=True, limit=64)
    check_text(f"{field}.domain", message.domain, required=True, limit=64)
    check_artifact_name(f"{field}.name", message.name)
    return ArtifactName(message.project, message.domain, message.name)


def check_artifact_name(field: str, name: str) -> None:
    check_text(field, name, required=True)
    if not _NAME.fullmatch(name):
        raise InvalidArgument(f"{field} {name!r}: it takes letters, digits, '.', '_' and '-'")


def version_from(version: str, field: str) -> str:
    check_text(field, version, required=True)
    return version


def query_from(
    project: identifier_pb2.ProjectIdentifier,
    request: list_pb2.ListRequest,
    name: str | None,
    *,
    latest_per_partition: bool = False,
) -> ArtifactQuery:
    scope = project_id_from(project)
    if name is not None:
        check_text("name", name)
    plain = [one for one in request.filters if not one.field.startswith(tuple(_PREFIXES))]
    return ArtifactQuery(
        project=scope.project,
        domain=scope.domain,
        name=name or None,
        conditions=conditions_from_proto(plain, FIELDS),
        attributes=list(_attributes(request.filters)),
        latest_per_partition=latest_per_partition,
    )


def check_spec(spec: artifact_pb2.ArtifactSpec, name: ArtifactName, version: str) -> None:
    """All but the partitions; what the keys of parents leave out is the artifact's own. Raises `InvalidArgument`
    naming the field."""
    if not spec.HasField("value"):
        raise InvalidArgument("spec.value is required")
    if not spec.HasField("type"):
        raise InvalidArgument("spec.type is required")
    check_text("spec.info.description", spec.info.description)
    check_text("spec.info.card.uri", spec.info.card.uri, limit=_REFERENCE_LIMIT)
    for key, value in spec.info.user_metadata.items():
        check_text("spec.info.user_metadata: a key", key, required=True)
        check_text(f"spec.info.user_metadata[{key!r}]", value, limit=1_000_000)
    check_text("spec.source.external_ref", spec.source.external_ref, limit=_REFERENCE_LIMIT)
    if len(spec.parent_artifacts) > _PARENTS:
        raise InvalidArgument(f"spec.parent_artifacts: at most {_PARENTS}, got {len(spec.parent_artifacts)}")
    for place, parent in enumerate(spec.parent_artifacts):
        field = f"spec.parent_artifacts[{place}]"
        for part in ("project", "domain", "name"):
            check_text(f"{field}.key.{part}", getattr(parent.key, part))
        check_text(f"{field}.version", parent.version, required=True)
        key = parent.key
        key.project, key.domain, key.name = (
            key.project or name.project,
            key.domain or name.domain,
            key.name or name.name,
        )
        if (key.project, key.domain, key.name, parent.version) == (name.project, name.domain, name.name, version):
            raise InvalidArgument(f"{field}: version {version!r} of {name.name} cannot come from itself")


def source_action_of(spec: artifact_pb2.ArtifactSpec, name: ArtifactName) -> ActionId | None:
    """The action that made the value; what its id leaves out is the artifact's. Raises `InvalidArgument`."""
    if spec.source.WhichOneof("source") != "task_action":
        return None
    run = spec.source.task_action.action.run
    run.org = ""
    run.project, run.domain = run.project or name.project, run.domain or name.domain
    action = require_action_id(spec.source.task_action.action, "spec.source.task_action.action")
    if (action.project, action.domain) != (name.project, name.domain):
        raise InvalidArgument(
            "spec.source.task_action.action: an artifact is made by an action of its own project and domain, "
            f"{name.project}/{name.domain}; {action} is another's"
        )
    return action


def _attributes(filters: Iterable[list_pb2.Filter]) -> Iterable[AttributeCondition]:
    for message in filters:
        for prefix, kind in _PREFIXES.items():
            key = message.field.removeprefix(prefix)
            if key == message.field:
                continue
            check_text(f"filter on {message.field!r}: the key", key, required=True)
            (condition,) = conditions_from_proto([message], {message.field: Field(message.field, "value")})
            yield AttributeCondition(kind, key, condition)
