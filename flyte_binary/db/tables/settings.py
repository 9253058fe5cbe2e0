"""Settings of the organization, of domains and of projects in a domain."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, PrimaryKeyConstraint, Table

from flyte_binary.db.tables.columns import identifier, metadata

settings = Table(
    "settings",
    metadata,
    identifier("domain"),
    identifier("project"),
    Column("settings", LargeBinary, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("domain", "project"),
)
"""An empty domain and project stand for the organization, an empty project for the domain. `settings` is a
`settings.Settings` of the contract, as it was sent."""
