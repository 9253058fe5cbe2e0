"""Cache keys against the SDK's own."""

from __future__ import annotations

import pytest
from flyte._internal.runtime import convert
from flyteidl2.core import identifier_pb2, interface_pb2, literals_pb2, tasks_pb2, types_pb2
from flyteidl2.task import common_pb2

from flyte_binary.domain.cache_keys import cache_key, interface_hash
from flyte_binary.domain.inputs_hash import inputs_hash


def interface(*keys: str) -> interface_pb2.TypedInterface:
    made = interface_pb2.TypedInterface()
    for key in keys:
        entry = made.inputs.variables.add(key=key)
        entry.value.type.simple = types_pb2.INTEGER
    made.outputs.variables.add(key="o0").value.type.simple = types_pb2.STRING
    return made


def inputs(*names: str) -> common_pb2.Inputs:
    value = literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(integer=1)))
    return common_pb2.Inputs(literals=[common_pb2.NamedLiteral(name=name, value=value) for name in names])


@pytest.mark.parametrize(
    "made", [interface_pb2.TypedInterface(), interface(), interface("b", "a"), interface("a", "b")]
)
def test_interfaces_hash_as_in_the_sdk(made: interface_pb2.TypedInterface) -> None:
    before = made.SerializeToString()
    assert interface_hash(made) == convert.generate_interface_hash(made)
    assert made.SerializeToString() == before


@pytest.mark.parametrize("ignored", [[], ["b"], ["a", "b"]])
def test_keys_are_those_of_the_sdks_children(ignored: list[str]) -> None:
    template = tasks_pb2.TaskTemplate(
        id=identifier_pb2.Identifier(name="env.hello"),
        metadata=tasks_pb2.TaskMetadata(discoverable=True, discovery_version="v", cache_ignore_input_vars=ignored),
        interface=interface("a", "b"),
    )
    given = inputs("a", "b")
    expected = convert.generate_cache_key_hash(
        "env.hello",
        convert.generate_inputs_hash_from_proto(given),
        template.interface,
        "v",
        ignored,
        given,
    )
    assert cache_key(template, inputs_hash(given, ignored=ignored)) == expected


def test_a_task_that_is_not_cached_has_no_key() -> None:
    assert cache_key(tasks_pb2.TaskTemplate(), "hash") == ""
