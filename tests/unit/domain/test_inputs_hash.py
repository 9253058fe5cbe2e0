"""Our hash of inputs against the SDK's own function, which is what it has to agree with."""

import msgpack
from flyte._internal.runtime.convert import generate_filtered_inputs_hash, generate_inputs_hash_from_proto
from flyteidl2.core import literals_pb2
from flyteidl2.task import common_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from flyte_binary.domain.inputs_hash import inputs_hash

Literal = literals_pb2.Literal


def integer(value: int) -> Literal:
    return Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(integer=value)))


def binary(value: bytes, tag: str = "msgpack") -> Literal:
    return Literal(scalar=literals_pb2.Scalar(binary=literals_pb2.Binary(value=value, tag=tag)))


def packed(value: object) -> Literal:
    return binary(msgpack.packb(value))


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(0, 9), inner, max_size=4),
    max_leaves=12,
)
leaves = st.integers(-(2**63), 2**63 - 1).map(integer) | plain.map(packed) | st.binary(max_size=20).map(binary)
hashed = st.builds(lambda literal, text: Literal(scalar=literal.scalar, hash=text), leaves, st.text(min_size=1))


def collection(items: list[Literal]) -> Literal:
    return Literal(collection=literals_pb2.LiteralCollection(literals=items))


def mapping(items: dict[str, Literal]) -> Literal:
    return Literal(map=literals_pb2.LiteralMap(literals=items))


def named_literal(name: str, value: Literal) -> common_pb2.NamedLiteral:
    return common_pb2.NamedLiteral(name=name, value=value)


literals = st.recursive(
    leaves | hashed,
    lambda inner: (
        st.lists(inner, max_size=3).map(collection) | st.dictionaries(st.text(), inner, max_size=3).map(mapping)
    ),
    max_leaves=6,
)
named = st.builds(named_literal, st.sampled_from("abcde"), literals)
all_inputs = st.lists(named, max_size=4).map(lambda items: common_pb2.Inputs(literals=items))


def hash_of(inputs: common_pb2.Inputs, ignored: set[str] | None = None) -> str:
    return inputs_hash(inputs, ignored=ignored or ())


@settings(max_examples=150, deadline=None)
@given(all_inputs, st.sets(st.sampled_from("abcde"), max_size=2))
def test_it_is_the_hash_that_the_sdk_computes(inputs: common_pb2.Inputs, ignored: set[str]) -> None:
    assert hash_of(inputs) == generate_inputs_hash_from_proto(inputs)
    assert hash_of(inputs, ignored) == generate_filtered_inputs_hash(inputs, sorted(ignored))


def test_the_order_of_keys_in_an_untyped_dictionary_does_not_count() -> None:
    one = common_pb2.Inputs(literals=[named_literal("d", packed({"a": 1, "b": {"x": 1, "y": 2}}))])
    two = common_pb2.Inputs(literals=[named_literal("d", packed({"b": {"y": 2, "x": 1}, "a": 1}))])
    assert hash_of(one) == hash_of(two)


def test_a_hash_of_its_own_stands_for_the_literal() -> None:
    one = common_pb2.Inputs(literals=[named_literal("f", Literal(hash="same"))])
    two = common_pb2.Inputs(literals=[named_literal("f", Literal(scalar=integer(5).scalar, hash="same"))])
    assert hash_of(one) == hash_of(two)


def test_no_inputs_and_only_ignored_inputs_hash_to_nothing() -> None:
    inputs = common_pb2.Inputs(literals=[named_literal("n", integer(1))])
    assert hash_of(common_pb2.Inputs()) == ""
    assert hash_of(inputs, {"n"}) == ""
