"""What requests about apps must say, checked before anything is written, with the field in the error.

The bounds are those of the contract's own rules (`buf.validate` of flyteidl2), but for an app's name, which may have
the 63 characters of a label: the reference backend takes them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

from flyteidl2.app import app_definition_pb2, app_payload_pb2
from flyteidl2.core import tasks_pb2

from flyte_binary.db.apps import ConsumedArtifact
from flyte_binary.domain.apps import LABEL_LIMIT
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import AppId
from flyte_binary.domain.names import check_text
from flyte_binary.domain.task_limits import quantity

RESERVED_PORTS = frozenset({8008, 8012, 8013, 8022, 8112, 9090, 9091})
"""Taken by what runs beside an app in its pod; the SDK refuses most of them too."""

RESERVED_VARIABLES = frozenset({"PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"})

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[^=\0]+")
_PORT_NAMES = ("", "http1", "h2c")
_REASON_LIMIT = 100
_DESCRIPTION_LIMIT = 100


def app_id_from(message: app_definition_pb2.Identifier, field: str) -> AppId:
    check_text(f"{field}.project", message.project, required=True, limit=LABEL_LIMIT)
    check_text(f"{field}.domain", message.domain, required=True, limit=LABEL_LIMIT)
    check_text(f"{field}.name", message.name, required=True, limit=LABEL_LIMIT)
    check_text(f"{field}.org", message.org)
    if not _NAME.fullmatch(message.name):
        raise InvalidArgument(
            f"{field}.name {message.name!r} is no name of an app: it takes letters, digits and '-', "
            "and starts and ends with a letter or a digit"
        )
    return AppId.from_proto(message)


def required_app_id(request: app_payload_pb2.GetRequest | app_payload_pb2.DeleteRequest) -> AppId:
    if not request.HasField("app_id"):
        raise InvalidArgument("app_id is required")
    return app_id_from(request.app_id, "app_id")


def app_id_of(request: app_payload_pb2.CreateRequest | app_payload_pb2.UpdateRequest) -> AppId:
    """Raises `InvalidArgument` for an app without an identifier or a spec as well."""
    if not request.app.metadata.HasField("id"):
        raise InvalidArgument("app.metadata.id is required")
    app = app_id_from(request.app.metadata.id, "app.metadata.id")
    if not request.app.HasField("spec"):
        raise InvalidArgument("app.spec is required")
    return app


def check_reason(reason: str) -> None:
    check_text("reason", reason, limit=_REASON_LIMIT)


def check_spec(spec: app_definition_pb2.Spec, *, longest_request: timedelta) -> None:
    """What is wrong wherever the app runs; the backend checks what it alone refuses."""
    match spec.WhichOneof("app_payload"):
        case "container":
            _check_container(spec.container)
        case "pod":
            if not spec.pod.HasField("pod_spec"):
                raise InvalidArgument("app.spec.pod.pod_spec is required")
        case _:
            raise InvalidArgument("app.spec.app_payload is required: a container or a pod")
    if spec.desired_state not in app_definition_pb2.Spec.DesiredState.values():
        raise InvalidArgument(f"app.spec.desired_state {spec.desired_state} is unknown")
    _check_scaling(spec)
    _check_timeout(spec, longest_request)
    _check_described(spec)


def _check_container(container: tasks_pb2.Container) -> None:
    field = "app.spec.container"
    check_text(f"{field}.image", container.image, limit=4096)
    if not container.image and not container.command and not container.args:
        raise InvalidArgument(f"{field}.command is required: there is neither an image nor a command to run")
    for place, text in enumerate([*container.command, *container.args]):
        if "\0" in text:
            raise InvalidArgument(f"{field}.command and args must not contain the NUL character (argument {place})")
    for place, pair in enumerate(container.env):
        if not _VARIABLE.fullmatch(pair.key):
            raise InvalidArgument(f"{field}.env[{place}].key {pair.key!r} is no name of a variable")
        if pair.key in RESERVED_VARIABLES:
            raise InvalidArgument(f"{field}.env[{place}].key {pair.key} is reserved: the platform sets it")
        if "\0" in pair.value:
            raise InvalidArgument(f"{field}.env[{place}].value must not contain the NUL character")
    _check_ports(container, field)
    _check_resources(container, field)


def _check_ports(container: tasks_pb2.Container, field: str) -> None:
    if len(container.ports) > 1:
        raise InvalidArgument(f"{field}.ports: an app has one port, got {len(container.ports)}")
    for port in container.ports:
        number = port.container_port
        if not 1 <= number <= 65535:
            raise InvalidArgument(f"{field}.ports[0].container_port {number} is not between 1 and 65535")
        if number in RESERVED_PORTS:
            raise InvalidArgument(f"{field}.ports[0].container_port {number} is reserved; choose another")
        if port.name not in _PORT_NAMES:
            raise InvalidArgument(f"{field}.ports[0].name {port.name!r} must be empty, http1 or h2c")


def _check_resources(container: tasks_pb2.Container, field: str) -> None:
    for kind, entries in (("requests", container.resources.requests), ("limits", container.resources.limits)):
        for place, entry in enumerate(entries):
            if quantity(entry.value) is None:
                raise InvalidArgument(
                    f"{field}.resources.{kind}[{place}].value {entry.value!r} is no quantity, such as 500m, 2 or 4Gi"
                )


def _check_scaling(spec: app_definition_pb2.Spec) -> None:
    scaling = spec.autoscaling
    replicas = scaling.replicas
    if replicas.max and replicas.max < replicas.min:
        raise InvalidArgument(
            f"app.spec.autoscaling.replicas.max {replicas.max} is less than min {replicas.min}; 0 stands for no limit"
        )
    for metric in ("request_rate", "concurrency"):
        if scaling.scaling_metric.HasField(metric) and getattr(scaling.scaling_metric, metric).target_value < 1:
            raise InvalidArgument(f"app.spec.autoscaling.scaling_metric.{metric}.target_value must be at least 1")
    if scaling.HasField("scaledown_period"):
        field, period = "app.spec.autoscaling.scaledown_period", scaling.scaledown_period
        if period.nanos or not 6 <= period.seconds <= 3600:
            raise InvalidArgument(f"{field} must be whole seconds between 6s and 1h, got {_text(period)}")


def _check_timeout(spec: app_definition_pb2.Spec, longest: timedelta) -> None:
    if not spec.timeouts.HasField("request_timeout"):
        return
    timeout = spec.timeouts.request_timeout
    if not 0 <= timeout.seconds <= longest.total_seconds() or timeout.nanos < 0:
        raise InvalidArgument(
            f"app.spec.timeouts.request_timeout must be between 0s and {longest.total_seconds():g}s "
            f"(internalApps.maxRequestTimeout), got {_text(timeout)}"
        )


def _check_described(spec: app_definition_pb2.Spec) -> None:
    check_text("app.spec.profile.short_description", spec.profile.short_description, limit=_DESCRIPTION_LIMIT)
    for place, link in enumerate(spec.links):
        check_text(f"app.spec.links[{place}].path", link.path, required=True, limit=4096)
    for place, item in enumerate(spec.inputs.items):
        check_text(f"app.spec.inputs.items[{place}].name", item.name, required=True)
    for name in ("subdomain", "cname"):
        host = getattr(spec.ingress, name)
        check_text(f"app.spec.ingress.{name}", host)
        if host and (urlsplit(f"//{host}").hostname or "") != host.lower():
            raise InvalidArgument(f"app.spec.ingress.{name} {host!r} is no host name")


def consumed_artifacts(spec: app_definition_pb2.Spec) -> Iterator[ConsumedArtifact]:
    for item in spec.inputs.items:
        if item.HasField("artifact_id"):
            key, version = item.artifact_id.key, item.artifact_id.version
            yield ConsumedArtifact(project=key.project, domain=key.domain, name=key.name, version=version)


def _text(duration: object) -> str:
    seconds, nanos = getattr(duration, "seconds", 0), getattr(duration, "nanos", 0)
    return f"{seconds + nanos / 1e9:g}s"
