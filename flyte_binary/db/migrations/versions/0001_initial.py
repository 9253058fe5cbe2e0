"""The first schema.

Revision ID: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "action_events",
        sa.Column("project", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("domain", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("run", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("phase", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("info", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project", "domain", "run", "name", "attempt", "phase", "version"),
    )
    op.create_table(
        "actions",
        sa.Column("project", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("domain", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("run", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("parent", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("phase", sa.Integer(), nullable=False),
        sa.Column("action_type", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "action_group",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "task_project",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "task_domain",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "task_name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), server_default="", nullable=False
        ),
        sa.Column(
            "task_version",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "task_type", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), server_default="", nullable=False
        ),
        sa.Column(
            "short_name",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "function_name",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "environment_name",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column("spec_digest", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("detail", sa.LargeBinary(), nullable=True),
        sa.Column(
            "input_uri", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), server_default="", nullable=False
        ),
        sa.Column(
            "run_output_base",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "cache_key", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), server_default="", nullable=False
        ),
        sa.Column("cache_status", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_spec", sa.LargeBinary(), nullable=True),
        sa.Column("run_source", sa.Integer(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="1", nullable=False),
        sa.Column("user_failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("system_failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("infrastructure_failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("queued_at", sa.BigInteger(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.LargeBinary(), nullable=True),
        sa.Column(
            "output_uri",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column("value", sa.LargeBinary(), nullable=True),
        sa.Column("signalled_by", sa.LargeBinary(), nullable=True),
        sa.Column("abort_reason", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=True),
        sa.Column("aborted_by", sa.LargeBinary(), nullable=True),
        sa.Column("recovered_from", sa.LargeBinary(), nullable=True),
        sa.Column("relation", sa.LargeBinary(), nullable=True),
        sa.Column(
            "trigger_name",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "trigger_task_name",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column("trigger_revision", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_by", sa.LargeBinary(), nullable=True),
        sa.Column(
            "created_by_subject",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "search_name",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column("superseded", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.PrimaryKeyConstraint("project", "domain", "run", "name"),
    )
    op.create_index("idx_actions_children", "actions", ["project", "domain", "run", "parent"], unique=False)
    op.create_index(
        "idx_actions_roots",
        "actions",
        ["project", "domain", "created_at", "run"],
        unique=False,
        sqlite_where=sa.text("parent IS NULL"),
        postgresql_where=sa.text("parent IS NULL"),
    )
    op.create_index(
        "idx_actions_roots_listed",
        "actions",
        ["project", "domain", "phase", sa.text("created_at DESC"), sa.text("run DESC")],
        unique=False,
        sqlite_where=sa.text("parent IS NULL"),
        postgresql_where=sa.text("parent IS NULL"),
    )
    op.create_index(
        "idx_actions_run_created", "actions", ["project", "domain", "run", "created_at", "name"], unique=False
    )
    op.create_index(
        "idx_actions_unfinished",
        "actions",
        ["project", "domain", "run", "name"],
        unique=False,
        sqlite_where=sa.text("phase IN (1, 2, 3, 4, 9)"),
        postgresql_where=sa.text("phase IN (1, 2, 3, 4, 9)"),
    )
    op.create_table(
        "attempts",
        sa.Column("project", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("domain", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("run", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("nonce", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column(
            "node", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), server_default="", nullable=False
        ),
        sa.Column(
            "output_prefix",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column("launched_at", sa.BigInteger(), nullable=False),
        sa.Column("running_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("archived_at", sa.BigInteger(), nullable=True),
        sa.Column(
            "log_uri", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), server_default="", nullable=False
        ),
        sa.PrimaryKeyConstraint("project", "domain", "run", "name", "attempt"),
    )
    op.create_index(
        "idx_attempts_open",
        "attempts",
        ["project", "domain", "run", "name"],
        unique=False,
        sqlite_where=sa.text("archived_at IS NULL"),
        postgresql_where=sa.text("archived_at IS NULL"),
    )
    op.create_table(
        "cache_outputs",
        sa.Column(
            "key",
            sa.String(length=512).with_variant(sa.String(length=512, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "output_uri",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column("metadata", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "cache_reservations",
        sa.Column(
            "key",
            sa.String(length=512).with_variant(sa.String(length=512, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("owner", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("heartbeat_seconds", sa.Integer(), server_default="0", nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("idx_cache_reservations_owner", "cache_reservations", ["owner"], unique=False)
    op.create_table(
        "projects",
        sa.Column("identifier", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column(
            "name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), server_default="", nullable=False
        ),
        sa.Column(
            "description",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column("labels", sa.LargeBinary(), nullable=True),
        sa.Column("state", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("identifier"),
    )
    op.create_table(
        "run_labels",
        sa.Column("project", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("domain", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("run", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("key", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column(
            "value", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), server_default="", nullable=False
        ),
        sa.PrimaryKeyConstraint("project", "domain", "run", "key"),
    )
    op.create_index("idx_run_labels_value", "run_labels", ["key", "value"], unique=False)
    op.create_table(
        "task_specs",
        sa.Column("digest", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("spec", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "tasks",
        sa.Column("project", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("domain", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("name", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("version", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column(
            "environment",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "function_name",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "env_description",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "short_description",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column(
            "deployed_by",
            sa.Text().with_variant(sa.Text(collation="C"), "postgresql"),
            server_default="",
            nullable=False,
        ),
        sa.Column("is_entrypoint", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("spec_digest", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("project", "domain", "name", "version"),
    )
    op.create_index("idx_tasks_created", "tasks", ["project", "domain", "name", "created_at"], unique=False)
