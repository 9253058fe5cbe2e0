"""What is wrong with an app is said with its field, before anything is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from connectrpc.code import Code
from flyteidl2.app import app_definition_pb2
from flyteidl2.app import app_payload_pb2 as pb
from flyteidl2.core import tasks_pb2
from google.protobuf.duration_pb2 import Duration

from tests.rpc.apps.conftest import World, refused
from tests.rpc.apps.messages import app_message

_Spec = app_definition_pb2.Spec


def no_payload(spec: _Spec) -> None:
    spec.ClearField("container")


def pod_without_a_spec(spec: _Spec) -> None:
    spec.pod.SetInParent()


def two_ports(spec: _Spec) -> None:
    spec.container.ports.add(container_port=81)


def reserved_port(spec: _Spec) -> None:
    spec.container.ports[0].container_port = 8012


def no_port(spec: _Spec) -> None:
    spec.container.ports[0].container_port = 70_000


def odd_port_name(spec: _Spec) -> None:
    spec.container.ports[0].name = "grpc"


def bad_quantity(spec: _Spec) -> None:
    spec.container.resources.requests.add(name=tasks_pb2.Resources.CPU, value="abc")


def reserved_variable(spec: _Spec) -> None:
    spec.container.env[0].key = "PORT"


def empty_variable(spec: _Spec) -> None:
    spec.container.env[0].key = ""


def nul_in_a_variable(spec: _Spec) -> None:
    spec.container.env[0].value = "a\0b"


def nul_in_the_command(spec: _Spec) -> None:
    spec.container.command.append("a\0b")


def fewer_than_the_least(spec: _Spec) -> None:
    spec.autoscaling.replicas.min = 2


def no_concurrency(spec: _Spec) -> None:
    spec.autoscaling.scaling_metric.concurrency.SetInParent()


def short_window(spec: _Spec) -> None:
    spec.autoscaling.scaledown_period.CopyFrom(Duration(seconds=5))


def broken_window(spec: _Spec) -> None:
    spec.autoscaling.scaledown_period.CopyFrom(Duration(seconds=10, nanos=1))


def long_timeout(spec: _Spec) -> None:
    spec.timeouts.request_timeout.CopyFrom(Duration(seconds=3601))


def negative_timeout(spec: _Spec) -> None:
    spec.timeouts.request_timeout.CopyFrom(Duration(seconds=-1))


def nameless_input(spec: _Spec) -> None:
    spec.inputs.items.add(string_value="x")


def empty_link(spec: _Spec) -> None:
    spec.links.add(title="docs")


def long_description(spec: _Spec) -> None:
    spec.profile.short_description = "x" * 101


def odd_host(spec: _Spec) -> None:
    spec.ingress.cname = "my host/x"


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (no_payload, "app.spec.app_payload"),
        (pod_without_a_spec, "app.spec.pod.pod_spec"),
        (two_ports, "app.spec.container.ports"),
        (reserved_port, "ports[0].container_port 8012"),
        (no_port, "ports[0].container_port 70000"),
        (odd_port_name, "ports[0].name"),
        (bad_quantity, "resources.requests[0].value 'abc'"),
        (reserved_variable, "env[0].key PORT"),
        (empty_variable, "env[0].key ''"),
        (nul_in_a_variable, "env[0].value"),
        (nul_in_the_command, "app.spec.container.command"),
        (fewer_than_the_least, "autoscaling.replicas.max"),
        (no_concurrency, "scaling_metric.concurrency.target_value"),
        (short_window, "autoscaling.scaledown_period"),
        (broken_window, "autoscaling.scaledown_period"),
        (long_timeout, "timeouts.request_timeout"),
        (negative_timeout, "timeouts.request_timeout"),
        (nameless_input, "inputs.items[0].name"),
        (empty_link, "links[0].path"),
        (long_description, "profile.short_description"),
        (odd_host, "ingress.cname"),
    ],
)
async def test_a_spec_is_refused_by_its_field(world: World, spoil: Callable[[_Spec], None], field: str) -> None:
    app = app_message()
    spoil(app.spec)
    for call in (
        world.apps.create(pb.CreateRequest(app=app)),
        world.apps.update(pb.UpdateRequest(app=app)),
    ):
        assert field in await refused(call, Code.INVALID_ARGUMENT)
    assert not await world.database.read(lambda tx: tx.apps.all())


async def test_requests_without_what_they_are_about_are_refused(world: World) -> None:
    nameless = app_definition_pb2.App(spec=app_message().spec)
    specless = app_definition_pb2.App(metadata=app_message().metadata)
    for call, field in (
        (world.apps.create(pb.CreateRequest()), "app.metadata.id"),
        (world.apps.create(pb.CreateRequest(app=nameless)), "app.metadata.id"),
        (world.apps.create(pb.CreateRequest(app=specless)), "app.spec"),
        (world.apps.update(pb.UpdateRequest(app=app_message(), reason="x" * 101)), "reason"),
        (world.apps.get(pb.GetRequest()), "app_id"),
        (world.apps.get(pb.GetRequest(ingress=app_definition_pb2.Ingress(public_url="http://x"))), "app_id"),
        (world.apps.delete(pb.DeleteRequest()), "app_id"),
    ):
        assert field in await refused(call, Code.INVALID_ARGUMENT)
