"""What requests must name, checked before anything is done, with the field in the error."""

from __future__ import annotations

from typing import TypeVar

from flyteidl2.common import identifier_pb2
from flyteidl2.task import task_definition_pb2
from google.protobuf.message import Message

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import ActionId, ProjectId, RunId, TaskId
from flyte_binary.domain.names import check_text

M = TypeVar("M", bound=Message)


def run_id_from(request: Message, field: str = "run_id") -> RunId:
    return _run_id(_required(request, field, identifier_pb2.RunIdentifier), field)


def action_id_from(request: Message, field: str = "action_id") -> ActionId:
    message = _required(request, field, identifier_pb2.ActionIdentifier)
    run = _run_id(message.run, f"{field}.run")
    check_text(f"{field}.name", message.name, required=True)
    return run.action(message.name)


def task_id_from(request: Message, field: str = "task_id") -> TaskId:
    message = _required(request, field, task_definition_pb2.TaskIdentifier)
    for name in ("project", "domain", "name", "version"):
        check_text(f"{field}.{name}", getattr(message, name), required=True)
    return TaskId.from_proto(message)


def project_id_from(message: identifier_pb2.ProjectIdentifier, field: str = "project_id") -> ProjectId:
    check_text(f"{field}.name", message.name, required=True)
    check_text(f"{field}.domain", message.domain, required=True)
    return ProjectId(message.name, message.domain)


def _run_id(message: identifier_pb2.RunIdentifier, field: str) -> RunId:
    for name in ("project", "domain", "name"):
        check_text(f"{field}.{name}", getattr(message, name), required=True)
    return RunId.from_proto(message)


def _required(request: Message, field: str, kind: type[M]) -> M:
    if not request.HasField(field):
        raise InvalidArgument(f"{field} is required")
    found = getattr(request, field)
    assert isinstance(found, kind)
    return found
