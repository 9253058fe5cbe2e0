"""Artifacts: their versions, what these are found by, and the partition keys of their names."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table, text

from flyte_binary.db.tables.columns import identifier, metadata, text_column

artifacts = Table(
    "artifacts",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("name"),
    identifier("version"),
    Column("spec", LargeBinary, nullable=False),
    text_column("partition"),
    Column("time_partition", BigInteger),
    Column("mismatch", LargeBinary),
    text_column("source_run"),
    text_column("source_action"),
    text_column("source_external_ref"),
    Column("created_by", LargeBinary),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "domain", "name", "version"),
    Index("idx_artifacts_listed", "project", "domain", text("created_at DESC"), "name", "version"),
    Index("idx_artifacts_latest", "project", "domain", "name", text("created_at DESC"), text("version DESC")),
)
"""One row a version, never changed. `spec` is an `ArtifactSpec`, `mismatch` a `PartitionSchemaMismatch`.

`partition` is one text for each distinct partition of a name, `time_partition` the beginning of its time.
"""

artifact_attributes = Table(
    "artifact_attributes",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("name"),
    identifier("version"),
    Column("kind", Integer, nullable=False),
    identifier("key"),
    text_column("value"),
    PrimaryKeyConstraint("project", "domain", "name", "version", "kind", "key"),
    Index("idx_artifact_attributes_key", "project", "domain", "kind", "key"),
)
"""What versions may be searched by: `kind` 0 is metadata of the user's, 1 the partitions that are texts."""

artifact_schemas = Table(
    "artifact_schemas",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("name"),
    Column("schema", LargeBinary, nullable=False),
    Column("declared", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("project", "domain", "name"),
)
"""The partition keys of a name, an `ArtifactPartitionSchema`: declared, or those of its first version."""
