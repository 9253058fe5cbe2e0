"""Apps as the SDK sends them."""

from __future__ import annotations

from flyteidl2.app import app_definition_pb2
from flyteidl2.core import literals_pb2, tasks_pb2

from flyte_binary.domain.ids import AppId

APP = AppId("flytesnacks", "development", "my-app")
STOPPED, STARTED, ACTIVE = (
    app_definition_pb2.Spec.DESIRED_STATE_STOPPED,
    app_definition_pb2.Spec.DESIRED_STATE_STARTED,
    app_definition_pb2.Spec.DESIRED_STATE_ACTIVE,
)


def app_message(
    app: AppId = APP, *, greeting: str = "hello", desired_state: app_definition_pb2.Spec.DesiredState = ACTIVE
) -> app_definition_pb2.App:
    container = tasks_pb2.Container(
        image="ghcr.io/flyteorg/flyte:py3.11-v2.12.1",
        command=["python3", "-m", "http.server"],
        env=[literals_pb2.KeyValuePair(key="GREETING", value=greeting)],
        ports=[tasks_pb2.ContainerPort(container_port=8080)],
    )
    message = app_definition_pb2.App()
    message.metadata.id.CopyFrom(app.to_proto())
    message.metadata.id.org = "127"
    message.spec.container.CopyFrom(container)
    message.spec.autoscaling.replicas.max = 1
    message.spec.ingress.SetInParent()
    message.spec.desired_state = desired_state
    return message
