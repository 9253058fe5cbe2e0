"""Writes `contract.txt`: what this server serves of Flyte's contract, and with which version of it.

    python proto/update.py            write the file anew, after an upgrade of flyteidl2 or a new service
    python proto/update.py --check    fail if it would change

The messages come from the flyteidl2 package, so nothing is generated here. The file makes an upgrade visible: a method
that came or went is a line, and a field that changed anywhere below a service's messages changes its fingerprint.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from importlib.metadata import version
from pathlib import Path

from google.protobuf.descriptor import FileDescriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions

CONTRACT = Path(__file__).with_name("contract.txt")

SERVICES = {
    "flyteidl2.actions.ActionsService": "actions.actions_service_pb2",
    "flyteidl2.app.AppLogsService": "app.app_logs_service_pb2",
    "flyteidl2.app.AppService": "app.app_service_pb2",
    "flyteidl2.artifact.ArtifactService": "artifact.artifact_service_pb2",
    "flyteidl2.auth.AuthMetadataService": "auth.auth_service_pb2",
    "flyteidl2.auth.IdentityService": "auth.identity_pb2",
    "flyteidl2.cacheservice.v2.CacheService": "cacheservice.v2.cacheservice_pb2",
    "flyteidl2.cluster.ClusterService": "cluster.service_pb2",
    "flyteidl2.dataproxy.DataProxyService": "dataproxy.dataproxy_service_pb2",
    "flyteidl2.imagebuilder.ImageService": "imagebuilder.service_pb2",
    "flyteidl2.project.ProjectService": "project.project_service_pb2",
    "flyteidl2.secret.SecretService": "secret.secret_pb2",
    "flyteidl2.settings.SettingsService": "settings.settings_service_pb2",
    "flyteidl2.task.TaskService": "task.task_service_pb2",
    "flyteidl2.trigger.TriggerService": "trigger.trigger_service_pb2",
    "flyteidl2.workflow.EventsProxyService": "workflow.events_proxy_service_pb2",
    "flyteidl2.workflow.InternalRunService": "workflow.internal_run_service_pb2",
    "flyteidl2.workflow.QueueService": "workflow.queue_service_pb2",
    "flyteidl2.workflow.RunService": "workflow.run_service_pb2",
    "flyteidl2.workflow.StateService": "workflow.state_service_pb2",
    "flyteidl2.workflow.TrackedRunService": "workflow.tracked_run_service_pb2",
    "flyteidl2.workflow.TranslatorService": "workflow.translator_service_pb2",
}
"""Full name -> module below flyteidl2."""


def render() -> str:
    lines = [
        "# What this server serves of Flyte's contract. Written by proto/update.py; do not edit.",
        "# GET: the method is free of side effects and may be called with it.",
        f"flyteidl2 {version('flyteidl2')}",
    ]
    for name, module in SERVICES.items():
        file = importlib.import_module(f"flyteidl2.{module}").DESCRIPTOR
        lines += ["", *_service(file.services_by_name[name.rpartition(".")[2]])]
    return "\n".join(lines) + "\n"


def _service(service: ServiceDescriptor) -> list[str]:
    fingerprint = _fingerprint(service.file)
    return [f"service {service.full_name}  messages {fingerprint}", *(f"  {_method(m)}" for m in service.methods)]


def _method(method: MethodDescriptor) -> str:
    request = ("stream " if method.client_streaming else "") + method.input_type.full_name
    response = ("stream " if method.server_streaming else "") + method.output_type.full_name
    safe = method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    return f"{method.name}({request}) -> {response}" + ("  GET" if safe else "")


def _fingerprint(file: FileDescriptor) -> str:
    """Of the file and of all of Flyte's files that it builds on."""
    found: dict[str, bytes] = {}

    def visit(visited: FileDescriptor) -> None:
        if visited.name.startswith("flyteidl2/") and visited.name not in found:
            found[visited.name] = visited.serialized_pb
            for dependency in visited.dependencies:
                visit(dependency)

    visit(file)
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(found[name])
    return digest.hexdigest()[:12]


def main() -> int:
    text = render()
    if "--check" not in sys.argv:
        CONTRACT.write_text(text)
        return 0
    if CONTRACT.read_text() == text:
        return 0
    sys.stderr.write("proto/contract.txt is not what the installed flyteidl2 says; run python proto/update.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
