"""Apps: what is wanted, what was seen, and the processes of those that run on this machine."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table

from flyte_binary.db.tables.columns import identifier, metadata, number, text_column

apps = Table(
    "apps",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("name"),
    identifier("host_label"),
    text_column("org"),
    Column("spec", LargeBinary, nullable=False),
    Column("meta", LargeBinary, nullable=False),
    text_column("sha"),
    number("wanted"),
    number("revision"),
    Column("generation", BigInteger, nullable=False),
    Column("status", LargeBinary, nullable=False),
    number("phase"),
    Column("observed", BigInteger, nullable=False),
    text_column("created_by"),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("started_at", BigInteger),
    PrimaryKeyConstraint("project", "domain", "name"),
    Index("idx_apps_host_label", "host_label", unique=True),
)
"""One row an app, until its deletion is done everywhere.

`spec` and `meta` are an `app.Spec` and an `app.Meta` as they came, `sha` tells whether two specs are the same program,
`wanted` is a number of `db.apps.Wanted`. `generation` grows with every change of what is wanted; `status` (an
`app.Status`) is what was seen for the generation `observed`, and `phase` the deployment status of its last condition.
"""

app_inputs = Table(
    "app_inputs",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("name"),
    Column("place", Integer, nullable=False),
    identifier("artifact_project"),
    identifier("artifact_domain"),
    identifier("artifact_name"),
    text_column("artifact_version"),
    PrimaryKeyConstraint("project", "domain", "name", "place"),
    Index("idx_app_inputs_artifact", "artifact_project", "artifact_domain", "artifact_name"),
)
"""The versions of artifacts that the newest spec of an app consumes."""

app_replicas = Table(
    "app_replicas",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("name"),
    Column("number", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    identifier("sha"),
    identifier("nonce"),
    Column("port", Integer, nullable=False),
    number("ready"),
    text_column("node"),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "domain", "name", "number"),
)
"""Processes of apps on the servers' own machines, from before the launch until nothing is left of them. `sha` is of the
spec that the process was started with, `ready` is 1 once it has listened."""
