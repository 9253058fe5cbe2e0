"""Artifacts as messages."""

from __future__ import annotations

from flyteidl2.artifact import artifact_pb2
from flyteidl2.common import identity_pb2

from flyte_binary.db.artifacts import ArtifactRow
from flyte_binary.domain.timestamps import micros_to_proto


def artifact_of(row: ArtifactRow) -> artifact_pb2.Artifact:
    """Organisations stay empty in ids: they are no part of an identity here."""
    name = row.name
    artifact = artifact_pb2.Artifact(
        artifact_id=artifact_pb2.ArtifactIdentifier(
            name=artifact_pb2.ArtifactName(project=name.project, domain=name.domain, name=name.name),
            version=row.version,
        ),
        spec=artifact_pb2.ArtifactSpec.FromString(row.spec),
        created_at=micros_to_proto(row.created_at),
    )
    if row.created_by is not None:
        artifact.created_by.CopyFrom(identity_pb2.EnrichedIdentity.FromString(row.created_by))
    if row.mismatch is not None:
        artifact.partition_schema_mismatch.CopyFrom(artifact_pb2.PartitionSchemaMismatch.FromString(row.mismatch))
    return artifact
