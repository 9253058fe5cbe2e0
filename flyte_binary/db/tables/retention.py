"""What retention still has to remove from the object store."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Table

from flyte_binary.db.tables.columns import BytewiseText, identifier, metadata

removals = Table(
    "removals",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("run"),
    Column("uri", BytewiseText, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "domain", "run"),
)
"""Runs whose rows are gone and whose folder is not; written with the removal of the rows, gone when the objects are.
Until then no other run has the name, and so the folder."""
