"""Numbers as the enums of messages: what the stubs of generated code want, and nothing at run time."""

from __future__ import annotations

from typing import cast

from flyteidl2.common import phase_pb2
from flyteidl2.core import catalog_pb2
from flyteidl2.project import project_service_pb2
from flyteidl2.secret import definition_pb2
from flyteidl2.workflow import run_definition_pb2


def phase_to_wire(phase: int) -> phase_pb2.ActionPhase:
    return cast("phase_pb2.ActionPhase", int(phase))


def cache_status_to_wire(status: int) -> catalog_pb2.CatalogCacheStatus:
    return cast("catalog_pb2.CatalogCacheStatus", status)


def action_type_to_wire(action_type: int) -> run_definition_pb2.ActionType:
    return cast("run_definition_pb2.ActionType", action_type)


def run_source_to_wire(source: int) -> run_definition_pb2.RunSource:
    return cast("run_definition_pb2.RunSource", source)


def project_state_to_wire(state: int) -> project_service_pb2.ProjectState:
    return cast("project_service_pb2.ProjectState", state)


def secret_type_to_wire(kind: int) -> definition_pb2.SecretType:
    return cast("definition_pb2.SecretType", kind)
