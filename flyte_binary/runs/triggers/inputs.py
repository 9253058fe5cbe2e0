"""The inputs of a run that a trigger makes: the trigger's own, and the time that it was fired for.

A task may ask for that time in one of its inputs. The SDK leaves the name of that input in the context of the inputs
and its runtime fills it in from the start time of the run. Where the input is a plain time it is put among the
literals as well, so that whoever looks at the run sees it and outputs are cached by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from flyteidl2.common import run_pb2
from flyteidl2.core import literals_pb2, types_pb2
from flyteidl2.task import common_pb2, task_definition_pb2
from flyteidl2.trigger import trigger_definition_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from flyte_binary.domain import locations
from flyte_binary.domain.errors import ResourceExhausted
from flyte_binary.domain.timestamps import from_micros, proto_to_micros
from flyte_binary.runs.order import RunOrder
from flyte_binary.runs.triggers.fit import input_type
from flyte_binary.storage.store import ObjectStore

KICKOFF_CONTEXT_KEY = "_u_kickoff_time_input_arg"
"""Under which the SDK's runtime looks for the name of the input (SDK 2.12.1)."""

MERGE_LIMIT_BYTES = 16 * 1024 * 1024
"""Larger inputs stay where they are; the runtime fills in the time by itself."""


async def with_trigger_inputs(
    order: RunOrder,
    trigger: trigger_definition_pb2.TriggerSpec,
    kickoff_arg: str,
    spec: task_definition_pb2.TaskSpec,
    store: ObjectStore,
) -> RunOrder:
    """The order with what its request left out. Its start time is set."""
    assert order.start_time is not None
    if order.inputs is not None:
        return order
    offloaded = order.offloaded or (trigger.offloaded_input_data if trigger.HasField("offloaded_input_data") else None)
    if offloaded is None:
        inputs = with_kickoff_time(trigger.inputs, kickoff_arg, order.start_time, spec)
        return replace(order, inputs=inputs)
    if not kickoff_arg:
        return replace(order, offloaded=offloaded)
    inputs = None if order.offloaded is not None else await _stored(offloaded, store)
    if inputs is None:
        return replace(order, offloaded=_hashed_with_time(offloaded, kickoff_arg, order.start_time, spec))
    return replace(order, inputs=with_kickoff_time(inputs, kickoff_arg, order.start_time, spec))


def with_kickoff_time(
    inputs: common_pb2.Inputs, name: str, time: Timestamp, spec: task_definition_pb2.TaskSpec
) -> common_pb2.Inputs:
    """A copy in which the input `name`, if there is a name, is `time`."""
    filled = common_pb2.Inputs()
    filled.CopyFrom(inputs)
    if not name:
        return filled
    if all(pair.key != KICKOFF_CONTEXT_KEY for pair in filled.context):
        filled.context.add(key=KICKOFF_CONTEXT_KEY, value=name)
    declared = input_type(spec, name)
    if declared is None or declared.simple != types_pb2.DATETIME:
        return filled
    value = literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=literals_pb2.Primitive(datetime=time)))
    fill_in(filled, {name: value}, spec)
    return filled


def fill_in(
    inputs: common_pb2.Inputs, values: Mapping[str, literals_pb2.Literal], spec: task_definition_pb2.TaskSpec
) -> None:
    """In place; what the inputs hold under these names gives way."""
    kept = [literal for literal in inputs.literals if literal.name not in values]
    made = [common_pb2.NamedLiteral(name=name, value=value) for name, value in values.items()]
    # As the SDK does it: whoever runs the task on the same inputs by hand has them in the same order, and their hash.
    places = {entry.key: place for place, entry in enumerate(spec.task_template.interface.inputs.variables)}
    ordered = sorted([*kept, *made], key=lambda one: places.get(one.name, len(places)))
    del inputs.literals[:]
    inputs.literals.extend(ordered)


async def _stored(offloaded: run_pb2.OffloadedInputData, store: ObjectStore) -> common_pb2.Inputs | None:
    """None if they are too large to be copied for each run. Raises `NotFound`."""
    try:
        body = await store.get(locations.inputs_uri(offloaded.uri), limit_bytes=MERGE_LIMIT_BYTES)
    except ResourceExhausted:
        return None
    return common_pb2.Inputs.FromString(body)


def _hashed_with_time(
    offloaded: run_pb2.OffloadedInputData, name: str, time: Timestamp, spec: task_definition_pb2.TaskSpec
) -> run_pb2.OffloadedInputData:
    """The stored inputs are the same each time and the outputs are not, so the time enters the hash."""
    if not offloaded.inputs_hash or name in spec.task_template.metadata.cache_ignore_input_vars:
        return offloaded
    text = from_micros(proto_to_micros(time)).isoformat().replace("+00:00", "Z")
    return run_pb2.OffloadedInputData(uri=offloaded.uri, inputs_hash=f"{offloaded.inputs_hash}|runStartTime={text}")
