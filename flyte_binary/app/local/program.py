"""An app's payload as a program of this machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any  # JSON of a pod's spec

from flyteidl2.app import app_definition_pb2
from flyteidl2.core import tasks_pb2
from google.protobuf.json_format import MessageToDict

from flyte_binary.app.backend import AppDefinition
from flyte_binary.app.local.processes import ReplicaId, ReplicaSpec
from flyte_binary.app.local.settings import LocalAppSettings
from flyte_binary.domain.code_bundles import bundle_in_arguments
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import AppId
from flyte_binary.domain.placeholders import render
from flyte_binary.domain.task_limits import quantity

CONTAINER = "app"
"""Name of the app's own container in a pod payload (the SDK's, and the reference's)."""

DEFAULT_PORT = 8080
DEFAULT_ORG = "default"

_R = tasks_pb2.Resources.ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    argv: Sequence[str]
    env: Mapping[str, str]
    image: str
    port: int
    """That the app would listen on in a container."""

    memory_limit_bytes: int | None
    gpus: bool


def check_program(app: AppDefinition) -> None:
    """Raises `InvalidArgument` for what no process can be made of."""
    if not program_of(app.spec).argv:
        raise InvalidArgument(
            "app.spec.container.command is required: apps run as processes of this machine, which have no image "
            "with a command of its own"
        )


def program_of(spec: app_definition_pb2.Spec) -> Program:
    return _of_pod(spec) if spec.HasField("pod") else _of_container(spec.container)


def replica_spec(
    app: AppDefinition, replica: ReplicaId, *, nonce: str, port: int, settings: LocalAppSettings
) -> ReplicaSpec:
    """The process that listens on `port`, if it can be told to."""
    program = program_of(app.spec)
    prefix = f"{settings.raw_data_prefix}/{app.id.project}/{app.id.domain}/{app.id.name}"
    argv = render(program.argv, {"rawoutputdataprefix": prefix})
    return ReplicaSpec(
        id=replica,
        nonce=nonce,
        argv=argv,
        env={**settings.environment, **program.env, **_reserved_env(app, port, settings)},
        image=program.image,
        secrets=tuple(app.spec.security_context.secrets),
        bundle_uri=bundle_in_arguments(argv),
        memory_limit_bytes=program.memory_limit_bytes,
        log_limit_bytes=settings.log_limit_bytes,
        notices=tuple(_notices(app, program)),
    )


def app_path(app: AppId) -> str:
    """Below the server's address, without a slash at the end."""
    return f"/apps/{app.project}/{app.domain}/{app.name}"


def request_timeout_of(spec: app_definition_pb2.Spec, settings: LocalAppSettings) -> timedelta:
    asked = spec.timeouts.request_timeout
    return asked.ToTimedelta() if asked.seconds or asked.nanos else settings.request_timeout


def _reserved_env(app: AppDefinition, port: int, settings: LocalAppSettings) -> dict[str, str]:
    return {
        "PORT": str(port),
        # With both of these the SDK's environments listen on the port given instead of the one they declare.
        "_F_APPLE_SILICON_ON_HOST": "1",
        "_F_APPLE_SILICON_HOST_PORT": str(port),
        "FLYTE_INTERNAL_EXECUTION_PROJECT": app.id.project,
        "FLYTE_INTERNAL_EXECUTION_DOMAIN": app.id.domain,
        "_U_ORG_NAME": app.org or DEFAULT_ORG,
        "_U_USE_ACTIONS": "1",
        "INTERNAL_APP_ENDPOINT_PATTERN": endpoint_pattern(app.id, settings),
    }


def endpoint_pattern(app: AppId, settings: LocalAppSettings) -> str:
    """How an app or a task finds another app of its project and domain; the SDK fills in the name."""
    return f"{settings.internal_url}/apps/{app.project}/{app.domain}/{{app_fqdn}}"


def _notices(app: AppDefinition, program: Program) -> Iterator[str]:
    if program.gpus:
        yield "the app asks for GPUs; local processes are not given GPUs of their own"
    if app.spec.HasField("pod"):
        yield f"the app has a pod; only its container {CONTAINER!r} counts here"
    if app.spec.ingress.cname or app.spec.ingress.subdomain:
        yield "the app asks for a host name of its own; on this machine it is reached by its path"


def _of_container(container: tasks_pb2.Container) -> Program:
    limits = {entry.name: entry.value for entry in container.resources.limits}
    requests = {entry.name: entry.value for entry in container.resources.requests}
    memory = quantity(limits.get(_R.MEMORY, "")) if _R.MEMORY in limits else None
    return Program(
        argv=[*container.command, *container.args],
        env={pair.key: pair.value for pair in container.env},
        image=container.image,
        port=container.ports[0].container_port if container.ports else DEFAULT_PORT,
        memory_limit_bytes=int(memory) if memory else None,
        gpus=_R.GPU in {**limits, **requests},
    )


def _of_pod(spec: app_definition_pb2.Spec) -> Program:
    pod: dict[str, Any] = MessageToDict(spec.pod.pod_spec)
    containers: list[dict[str, Any]] = pod.get("containers", [])
    wanted = spec.pod.primary_container_name or CONTAINER
    chosen = next((one for one in containers if one.get("name") == wanted), containers[0] if containers else None)
    if chosen is None:
        raise InvalidArgument("app.spec.pod.pod_spec.containers is required: there is no container in the pod")
    limits = chosen.get("resources", {}).get("limits", {})
    memory = quantity(str(limits.get("memory", "")))
    ports = chosen.get("ports", [])
    return Program(
        argv=[str(part) for part in [*chosen.get("command", []), *chosen.get("args", [])]],
        env={pair["name"]: str(pair["value"]) for pair in chosen.get("env", []) if "value" in pair and "name" in pair},
        image=str(chosen.get("image", "")),
        port=int(ports[0].get("containerPort", DEFAULT_PORT)) if ports else DEFAULT_PORT,
        memory_limit_bytes=int(memory) if memory else None,
        gpus=any("gpu" in name for name in limits),
    )
