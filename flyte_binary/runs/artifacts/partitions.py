"""Partitions of versions and the keys that a name has them by: checked, compared, brought to one form. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

from flyteidl2.artifact import artifact_pb2
from flyteidl2.core import artifact_id_pb2

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.names import check_text
from flyte_binary.domain.timestamps import from_micros, is_time, proto_to_micros, to_micros

KEY_LIMIT = 64
_KEYS = 16
_DEFAULT_KEYS = {artifact_id_pb2.HOUR: "hour"}
_GRANULARITIES = frozenset(
    {
        artifact_id_pb2.MINUTE,
        artifact_id_pb2.HOUR,
        artifact_id_pb2.DAY,
        artifact_id_pb2.WEEK,
        artifact_id_pb2.MONTH,
    }
)

Schema = artifact_pb2.ArtifactPartitionSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    texts: dict[str, str]
    time_key: str
    granularity: int
    time: int | None
    """The beginning, in microseconds since the epoch."""

    @property
    def identity(self) -> str:
        """One text for each partition."""
        if not self.texts and self.time is None:
            return ""
        return json.dumps([self.time, sorted(self.texts.items())], separators=(",", ":"))

    def schema(self) -> Schema:
        schema = Schema(partition_keys=sorted(self.texts))
        if self.time is not None:
            schema.time_partition.key = self.time_key
            schema.time_partition.granularity = cast("artifact_id_pb2.Granularity", self.granularity)
        return schema


def partition_from(spec: artifact_pb2.ArtifactSpec) -> Partition:
    """Of a version. Raises `InvalidArgument` naming the field."""
    texts: dict[str, str] = {}
    for key, value in spec.partitions.value.items():
        _check_key("spec.partitions", key)
        if value.WhichOneof("value") != "static_value":
            raise InvalidArgument(f"spec.partitions[{key!r}]: static_value is required, the text of the partition")
        check_text(f"spec.partitions[{key!r}]", value.static_value, required=True)
        texts[key] = value.static_value
    if len(texts) > _KEYS:
        raise InvalidArgument(f"spec.partitions: at most {_KEYS} keys, got {len(texts)}")
    if not spec.HasField("time_partition"):
        return Partition(texts=texts, time_key="", granularity=0, time=None)
    time = spec.time_partition
    granularity = _granularity(time.granularity, "spec.time_partition.granularity")
    key = time.key or _DEFAULT_KEYS.get(time.granularity, "date")
    _check_key("spec.time_partition.key", key)
    if key in texts:
        raise InvalidArgument(f"spec.time_partition.key: {key!r} is also a key of spec.partitions")
    stamp = time.value.time_value
    if time.value.WhichOneof("value") != "time_value" or not is_time(stamp):
        raise InvalidArgument("spec.time_partition.value: time_value is required, a time between the years 1 and 9999")
    return Partition(
        texts=texts, time_key=key, granularity=granularity, time=_floor(proto_to_micros(stamp), granularity)
    )


def schema_from(schema: Schema) -> Schema:
    """A declared one, its keys in one order. Raises `InvalidArgument` naming the field."""
    keys = list(schema.partition_keys)
    if len(keys) > _KEYS:
        raise InvalidArgument(f"partition_schema.partition_keys: at most {_KEYS}, got {len(keys)}")
    made = Schema(partition_keys=keys)
    if schema.HasField("time_partition"):
        _granularity(schema.time_partition.granularity, "partition_schema.time_partition.granularity")
        made.time_partition.CopyFrom(schema.time_partition)
        keys = [*keys, schema.time_partition.key]
    for key in keys:
        _check_key("partition_schema", key)
    if len(set(keys)) != len(keys):
        raise InvalidArgument("partition_schema: its keys must differ")
    return made


def same(one: Schema, other: Schema) -> bool:
    """Whatever order the keys were given in."""
    return _comparable(one) == _comparable(other)


def described(schema: Schema) -> str:
    keys = list(schema.partition_keys)
    if schema.HasField("time_partition"):
        name = artifact_id_pb2.Granularity.Name(schema.time_partition.granularity).lower()
        keys.insert(0, f"{schema.time_partition.key} ({name})")
    return ", ".join(keys) or "no partitions"


def time_text(micros: int) -> str:
    """RFC 3339, as filters take it."""
    return from_micros(micros).isoformat().replace("+00:00", "Z")


def _comparable(schema: Schema) -> tuple[object, ...]:
    time = schema.time_partition
    return frozenset(schema.partition_keys), time.key, int(time.granularity)


def _check_key(field: str, key: str) -> None:
    check_text(f"{field}: a key", key, required=True, limit=KEY_LIMIT)


def _granularity(number: int, field: str) -> int:
    if number not in _GRANULARITIES:
        raise InvalidArgument(f"{field} is required: MINUTE, HOUR, DAY, WEEK or MONTH")
    return number


def _floor(micros: int, granularity: int) -> int:
    """The beginning of the partition that a time lies in, in UTC; weeks begin on Mondays."""
    moment = from_micros(micros)
    match granularity:
        case artifact_id_pb2.MINUTE:
            floored = moment.replace(second=0, microsecond=0)
        case artifact_id_pb2.HOUR:
            floored = moment.replace(minute=0, second=0, microsecond=0)
        case _:
            floored = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if granularity == artifact_id_pb2.MONTH:
        floored = floored.replace(day=1)
    if granularity == artifact_id_pb2.WEEK and floored - datetime.min.replace(tzinfo=UTC) >= timedelta(days=7):
        floored -= timedelta(days=floored.weekday())
    return to_micros(floored)
