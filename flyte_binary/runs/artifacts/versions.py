"""A new version of an artifact: checked, brought to one form, written, and told to the triggers that watch its name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from flyteidl2.artifact import artifact_pb2

from flyte_binary.db.artifacts import ArtifactName, ArtifactRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import AlreadyExists, NotFound
from flyte_binary.domain.ids import ActionId
from flyte_binary.domain.timestamps import micros_to_proto
from flyte_binary.runs.artifacts.partitions import Partition, Schema, described, partition_from, same
from flyte_binary.runs.artifacts.requests import check_spec, source_action_of
from flyte_binary.runs.artifacts.watching import owe_firings
from flyte_binary.runs.projects.scope import require_project


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What is to be written; a pure value."""

    row: ArtifactRow
    metadata: dict[str, str]
    partition: Partition
    source: ActionId | None


def publication_from(
    name: ArtifactName, version: str, spec: artifact_pb2.ArtifactSpec, *, created_by: bytes | None, at: int
) -> Publication:
    """`spec` is completed in place. Raises `InvalidArgument` naming the field."""
    check_spec(spec, name, version)
    source = source_action_of(spec, name)
    partition = partition_from(spec)
    _complete(spec, name, version, partition)
    row = ArtifactRow(
        name=name,
        version=version,
        spec=spec.SerializeToString(deterministic=True),
        partition=partition.identity,
        time_partition=partition.time,
        source_run=source.run if source is not None else "",
        source_action=source.name if source is not None else "",
        source_external_ref=spec.source.external_ref,
        created_by=created_by,
        created_at=at,
    )
    return Publication(row=row, metadata=dict(spec.info.user_metadata), partition=partition, source=source)


def publish(tx: Transaction, publication: Publication) -> ArtifactRow:
    """Publishing the same again is answered with what is there, and fires nothing.

    A version whose partitions are not those of its name is kept, because its value exists already, and says so.
    Raises `NotFound` for an unknown project or producing action, and `AlreadyExists` if the version is another one;
    the transaction may go on after either.
    """
    row, source = publication.row, publication.source
    require_project(tx, row.name.project)
    if source is not None and tx.actions.get(source) is None:
        raise NotFound(f"spec.source.task_action.action: action {source} not found")
    existing = tx.artifacts.get(row.name, row.version)
    if existing is None:
        row = replace(row, mismatch=_mismatch(tx, row.name, publication.partition))
        if tx.artifacts.insert(row, publication.metadata, publication.partition.texts):
            owe_firings(tx, row)
            return row
        existing = tx.artifacts.get(row.name, row.version)
    if existing is None or existing.spec != row.spec:
        raise AlreadyExists(
            f"artifact {row.name.name} has another version {row.version!r} already; versions never change"
        )
    return existing


def _mismatch(tx: Transaction, name: ArtifactName, partition: Partition) -> bytes | None:
    actual = partition.schema()
    expected = Schema.FromString(tx.artifacts.fix_schema(name, actual.SerializeToString(deterministic=True)).schema)
    if same(expected, actual):
        return None
    message = f"partitioned by {described(actual)}, where {name.name} is partitioned by {described(expected)}"
    found = artifact_pb2.PartitionSchemaMismatch(expected=expected, actual=actual, message=message)
    return found.SerializeToString(deterministic=True)


def _complete(spec: artifact_pb2.ArtifactSpec, name: ArtifactName, version: str, partition: Partition) -> None:
    """The value carries the artifact's identity wherever it goes, and times are beginnings of partitions."""
    stamp = spec.value.artifact_id
    stamp.key.project, stamp.key.domain, stamp.key.name, stamp.key.org = name.project, name.domain, name.name, ""
    stamp.version = version
    if partition.time is not None:
        spec.time_partition.key = partition.time_key
        spec.time_partition.value.time_value.CopyFrom(micros_to_proto(partition.time))
