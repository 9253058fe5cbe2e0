"""Secrets, encrypted: whoever reads the database alone learns their names."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, LargeBinary, PrimaryKeyConstraint, Table

from flyte_binary.db.tables.columns import identifier, metadata, number

secrets = Table(
    "secrets",
    metadata,
    identifier("domain"),
    identifier("project"),
    identifier("name"),
    number("type"),
    identifier("key_id"),
    Column("nonce", LargeBinary, nullable=False),
    Column("ciphertext", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("domain", "project", "name"),
)
"""An empty domain and project stand for the organization. `key_id` tells which key of the key file opens the row;
every encryption has a `nonce` of its own, which therefore also tells one state of the row from the next."""
