"""Which servers live, and which of them works on which shard of the actions."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, Table

from flyte_binary.db.tables.columns import BytewiseText, identifier, metadata, number, text_column

servers = Table(
    "servers",
    metadata,
    Column("id", BytewiseText, primary_key=True),
    text_column("node"),
    Column("started_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)
"""`node` is the machine and data folder whose attempts the server can see. Times are the database's clock."""

shard_leases = Table(
    "shard_leases",
    metadata,
    Column("shard", Integer, primary_key=True, autoincrement=False),
    identifier("owner"),
    number("epoch"),
    Column("expires_at", BigInteger, nullable=False),
)
"""`epoch` grows with every change of hands, so that a write of the owner before is recognised."""
