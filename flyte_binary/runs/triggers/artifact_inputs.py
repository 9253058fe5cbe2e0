"""What a run takes from the version of the artifact that fires its trigger: the value, partitions, and where it came
from.

The runtime fills nothing of it in, unlike a kick-off time, so all of it stands in the inputs
(`flyte/_internal/runtime/trigger_serde.py` of the SDK 2.12.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from flyteidl2.artifact import artifact_pb2
from flyteidl2.common import run_pb2
from flyteidl2.core import literals_pb2, types_pb2
from flyteidl2.task import common_pb2, task_definition_pb2
from flyteidl2.trigger import trigger_definition_pb2

from flyte_binary.db.artifacts import ArtifactRow
from flyte_binary.domain import locations
from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.timestamps import micros_to_proto, proto_to_micros, to_micros
from flyte_binary.runs.artifacts.partitions import time_text
from flyte_binary.runs.order import RunOrder
from flyte_binary.runs.triggers.fit import input_type
from flyte_binary.runs.triggers.inputs import fill_in
from flyte_binary.storage.store import ObjectStore

INPUTS_LIMIT_BYTES = 256 * 1024 * 1024
"""Of stored inputs of a trigger, which are copied for each version."""


async def with_artifact(
    order: RunOrder,
    artifact: ArtifactRow,
    trigger: trigger_definition_pb2.TriggerSpec,
    automation: common_pb2.ArtifactTrigger,
    spec: task_definition_pb2.TaskSpec,
    store: ObjectStore,
) -> RunOrder:
    """The order with its inputs, and with the run that made the artifact as the one that it is related to.

    Raises `NotFound` or `ResourceExhausted` for stored inputs that are gone or too large, and `InvalidArgument` for a
    partition that the input it goes to cannot hold.
    """
    if artifact.source_run:
        made_by = RunId(artifact.name.project, artifact.name.domain, artifact.source_run)
        order.run_spec.relation.relation_type = run_pb2.RELATION_TYPE_ON_ARTIFACT
        order.run_spec.relation.related_to.CopyFrom(made_by.to_proto())
    values = dict(_bound(artifact_pb2.ArtifactSpec.FromString(artifact.spec), automation, spec))
    if not trigger.HasField("offloaded_input_data"):
        inputs = common_pb2.Inputs()
        inputs.CopyFrom(trigger.inputs)
    elif not values:
        return replace(order, offloaded=trigger.offloaded_input_data)
    else:
        uri = locations.inputs_uri(trigger.offloaded_input_data.uri)
        inputs = common_pb2.Inputs.FromString(await store.get(uri, limit_bytes=INPUTS_LIMIT_BYTES))
    fill_in(inputs, values, spec)
    return replace(order, inputs=inputs)


def _bound(
    artifact: artifact_pb2.ArtifactSpec, automation: common_pb2.ArtifactTrigger, spec: task_definition_pb2.TaskSpec
) -> Iterator[tuple[str, literals_pb2.Literal]]:
    """A partition that the version does not have leaves its input to the trigger's own value, or the task's default."""
    if automation.input_arg:
        yield automation.input_arg, artifact.value
    for name, key in sorted(automation.partition_input_args.items()):
        declared = input_type(spec, name)
        wants_time = declared is not None and declared.simple == types_pb2.DATETIME
        if artifact.HasField("time_partition") and artifact.time_partition.key == key:
            micros = proto_to_micros(artifact.time_partition.value.time_value)
            yield name, _time(micros) if wants_time else _text(time_text(micros))
        elif key in artifact.partitions.value:
            text = artifact.partitions.value[key].static_value
            yield name, _time(_micros_of(text, name, key)) if wants_time else _text(text)


def _micros_of(text: str, name: str, key: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgument(f"input {name!r} is a time, and partition {key!r} of the artifact is {text!r}") from None
    return to_micros(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))


def _time(micros: int) -> literals_pb2.Literal:
    return _primitive(literals_pb2.Primitive(datetime=micros_to_proto(micros)))


def _text(text: str) -> literals_pb2.Literal:
    return _primitive(literals_pb2.Primitive(string_value=text))


def _primitive(primitive: literals_pb2.Primitive) -> literals_pb2.Literal:
    return literals_pb2.Literal(scalar=literals_pb2.Scalar(primitive=primitive))
