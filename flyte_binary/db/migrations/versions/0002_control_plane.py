"""Secrets, triggers, settings, artifacts, apps: what the control plane keeps besides runs.

Revision ID: 0002
"""

from __future__ import annotations

from typing import Any  # columns have many types

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """One function a service, in the order in which they came."""
    _several_servers()
    _retention()
    _triggers()
    _secrets()
    _settings()
    _artifacts()
    _apps()


def _several_servers() -> None:
    op.create_table(
        "servers",
        sa.Column("id", _TEXT, primary_key=True, nullable=False),
        sa.Column("node", _TEXT, server_default="", nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "shard_leases",
        sa.Column("shard", sa.Integer(), primary_key=True, autoincrement=False, nullable=False),
        sa.Column("owner", _TEXT, nullable=False),
        sa.Column("epoch", sa.Integer(), server_default="0", nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
    )
    listed = ["project", "domain", "run", "phase", sa.text("created_at DESC"), sa.text("name DESC")]
    op.create_index("idx_actions_listed", "actions", listed)
    if op.get_bind().dialect.name == "postgresql":
        op.create_index("idx_actions_updated", "actions", ["updated_at"])


def _triggers() -> None:
    op.create_table(
        "triggers",
        *_trigger_payload(),
        sa.Column("latest_revision", sa.BigInteger(), nullable=False),
        sa.Column("with_task", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("anchor", sa.BigInteger(), nullable=False),
        sa.Column("next_due", sa.BigInteger(), nullable=True),
        sa.Column("watched_artifact", _TEXT, nullable=True),
        sa.PrimaryKeyConstraint("project", "domain", "task_name", "name"),
    )
    scheduled = sa.text("next_due IS NOT NULL")
    op.create_index("idx_triggers_due", "triggers", ["next_due"], sqlite_where=scheduled, postgresql_where=scheduled)
    watching, columns = sa.text("watched_artifact IS NOT NULL"), ["project", "domain", "watched_artifact"]
    op.create_index("idx_triggers_watching", "triggers", columns, sqlite_where=watching, postgresql_where=watching)
    listed = ["project", "domain", sa.text("active DESC"), sa.text("updated_at DESC")]
    op.create_index("idx_triggers_listed", "triggers", listed)
    op.create_table(
        "trigger_revisions",
        *_trigger_payload(),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project", "domain", "task_name", "name", "revision"),
    )
    firing = ("project", "domain", "task_name", "name", "artifact", "version")
    op.create_table(
        "artifact_firings",
        *(sa.Column(name, _TEXT, nullable=False) for name in firing),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(*firing),
    )
    op.create_index("idx_artifact_firings_due", "artifact_firings", ["created_at"])


def _trigger_payload() -> list[sa.Column[Any]]:
    return [
        *(sa.Column(name, _TEXT, nullable=False) for name in ("project", "domain", "task_name", "name")),
        sa.Column("spec", sa.LargeBinary(), nullable=False),
        sa.Column("automation_spec", sa.LargeBinary(), nullable=False),
        sa.Column("automation_type", sa.Integer(), server_default="0", nullable=False),
        sa.Column("task_version", _TEXT, server_default="", nullable=False),
        sa.Column("active", sa.Integer(), server_default="0", nullable=False),
        sa.Column("deployed_by", sa.LargeBinary(), nullable=True),
        sa.Column("updated_by", sa.LargeBinary(), nullable=True),
        sa.Column("deployed_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("triggered_at", sa.BigInteger(), nullable=True),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
    ]


def _secrets() -> None:
    op.create_table(
        "secrets",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("domain", "project", "name")),
        sa.Column("type", sa.Integer(), server_default="0", nullable=False),
        sa.Column("key_id", _TEXT, nullable=False),
        sa.Column("nonce", sa.LargeBinary(), nullable=False),
        sa.Column("ciphertext", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("domain", "project", "name"),
    )


def _settings() -> None:
    op.create_table(
        "settings",
        sa.Column("domain", _TEXT, nullable=False),
        sa.Column("project", _TEXT, nullable=False),
        sa.Column("settings", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("domain", "project"),
    )


def _retention() -> None:
    op.create_table(
        "removals",
        sa.Column("project", _TEXT, nullable=False),
        sa.Column("domain", _TEXT, nullable=False),
        sa.Column("run", _TEXT, nullable=False),
        sa.Column("uri", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project", "domain", "run"),
    )


def _artifacts() -> None:
    own = [("project", _TEXT), ("domain", _TEXT), ("name", _TEXT)]
    op.create_table(
        "artifacts",
        *(sa.Column(name, kind, nullable=False) for name, kind in own),
        sa.Column("version", _TEXT, nullable=False),
        sa.Column("spec", sa.LargeBinary(), nullable=False),
        sa.Column("partition", _TEXT, server_default="", nullable=False),
        sa.Column("time_partition", sa.BigInteger(), nullable=True),
        sa.Column("mismatch", sa.LargeBinary(), nullable=True),
        *(
            sa.Column(name, _TEXT, server_default="", nullable=False)
            for name in ("source_run", "source_action", "source_external_ref")
        ),
        sa.Column("created_by", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project", "domain", "name", "version"),
    )
    newest = sa.text("created_at DESC")
    op.create_index("idx_artifacts_listed", "artifacts", ["project", "domain", newest, "name", "version"])
    latest = ["project", "domain", "name", newest, sa.text("version DESC")]
    op.create_index("idx_artifacts_latest", "artifacts", latest)
    op.create_table(
        "artifact_attributes",
        *(sa.Column(name, kind, nullable=False) for name, kind in own),
        sa.Column("version", _TEXT, nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("key", _TEXT, nullable=False),
        sa.Column("value", _TEXT, server_default="", nullable=False),
        sa.PrimaryKeyConstraint("project", "domain", "name", "version", "kind", "key"),
    )
    searched = ["project", "domain", "kind", "key"]
    op.create_index("idx_artifact_attributes_key", "artifact_attributes", searched)
    op.create_table(
        "artifact_schemas",
        *(sa.Column(name, kind, nullable=False) for name, kind in own),
        sa.Column("schema", sa.LargeBinary(), nullable=False),
        sa.Column("declared", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("project", "domain", "name"),
    )


def _apps() -> None:
    app = ("project", "domain", "name")
    op.create_table(
        "apps",
        *(sa.Column(name, _TEXT, nullable=False) for name in (*app, "host_label")),
        sa.Column("org", _TEXT, server_default="", nullable=False),
        sa.Column("spec", sa.LargeBinary(), nullable=False),
        sa.Column("meta", sa.LargeBinary(), nullable=False),
        sa.Column("sha", _TEXT, server_default="", nullable=False),
        sa.Column("wanted", sa.Integer(), server_default="0", nullable=False),
        sa.Column("revision", sa.Integer(), server_default="0", nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.LargeBinary(), nullable=False),
        sa.Column("phase", sa.Integer(), server_default="0", nullable=False),
        sa.Column("observed", sa.BigInteger(), nullable=False),
        sa.Column("created_by", _TEXT, server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint(*app),
    )
    op.create_index("idx_apps_host_label", "apps", ["host_label"], unique=True)
    artifact = ("artifact_project", "artifact_domain", "artifact_name")
    op.create_table(
        "app_inputs",
        *(sa.Column(name, _TEXT, nullable=False) for name in app),
        sa.Column("place", sa.Integer(), nullable=False),
        *(sa.Column(name, _TEXT, nullable=False) for name in artifact),
        sa.Column("artifact_version", _TEXT, server_default="", nullable=False),
        sa.PrimaryKeyConstraint(*app, "place"),
    )
    op.create_index("idx_app_inputs_artifact", "app_inputs", list(artifact))
    op.create_table(
        "app_replicas",
        *(sa.Column(name, _TEXT, nullable=False) for name in app),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        *(sa.Column(name, _TEXT, nullable=False) for name in ("sha", "nonce")),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("ready", sa.Integer(), server_default="0", nullable=False),
        sa.Column("node", _TEXT, server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(*app, "number"),
    )
