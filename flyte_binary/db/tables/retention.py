"""What retention still has to remove from the object store."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Table

from flyte_binary.db.tables.columns import BytewiseText, metadata

removals = Table(
    "removals",
    metadata,
    Column("uri", BytewiseText, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
)
"""Folders whose rows are gone; written with the removal of the rows, gone when the objects are."""
