"""Runs, actions and what belongs to them; projects, tasks, the cache."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table, text

from flyte_binary.db.tables.columns import BytewiseString, BytewiseText, identifier, metadata, number, text_column

UNFINISHED_SQL = "phase IN (1, 2, 3, 4, 9)"
"""QUEUED, WAITING_FOR_RESOURCES, INITIALIZING, RUNNING, PAUSED."""


projects = Table(
    "projects",
    metadata,
    Column("identifier", BytewiseText, primary_key=True),
    text_column("name"),
    text_column("description"),
    Column("labels", LargeBinary),
    number("state"),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

task_specs = Table(
    "task_specs",
    metadata,
    Column("digest", BytewiseText, primary_key=True),
    Column("spec", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("name"),
    identifier("version"),
    text_column("environment"),
    text_column("function_name"),
    text_column("env_description"),
    text_column("short_description"),
    text_column("deployed_by"),
    Column("is_entrypoint", Boolean, nullable=False, server_default=text("false")),
    Column("spec_digest", BytewiseText, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "domain", "name", "version"),
    Index("idx_tasks_created", "project", "domain", "name", "created_at"),
)

actions = Table(
    "actions",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("run"),
    identifier("name"),
    Column("parent", BytewiseText),
    Column("phase", Integer, nullable=False),
    number("action_type"),
    text_column("action_group"),
    text_column("task_project"),
    text_column("task_domain"),
    text_column("task_name"),
    text_column("task_version"),
    text_column("task_type"),
    text_column("short_name"),
    text_column("function_name"),
    text_column("environment_name"),
    Column("spec_digest", BytewiseText),
    Column("detail", LargeBinary),
    text_column("input_uri"),
    text_column("run_output_base"),
    text_column("cache_key"),
    number("cache_status"),
    Column("run_spec", LargeBinary),
    number("run_source"),
    number("attempts", 1),
    number("user_failures"),
    number("system_failures"),
    number("infrastructure_failures"),
    Column("queued_at", BigInteger, nullable=False),
    Column("not_before", BigInteger),
    Column("error", LargeBinary),
    text_column("output_uri"),
    Column("value", LargeBinary),
    Column("signalled_by", LargeBinary),
    Column("abort_reason", BytewiseText),
    Column("aborted_by", LargeBinary),
    Column("recovered_from", LargeBinary),
    Column("relation", LargeBinary),
    text_column("trigger_name"),
    text_column("trigger_task_name"),
    Column("trigger_revision", BigInteger, nullable=False, server_default="0"),
    Column("created_by", LargeBinary),
    text_column("created_by_subject"),
    text_column("search_name"),
    Column("superseded", Boolean, nullable=False, server_default=text("false")),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    number("version", 1),
    PrimaryKeyConstraint("project", "domain", "run", "name"),
    Index("idx_actions_children", "project", "domain", "run", "parent"),
    Index("idx_actions_run_created", "project", "domain", "run", "created_at", "name"),
    Index(
        "idx_actions_roots",
        "project",
        "domain",
        "created_at",
        "run",
        sqlite_where=text("parent IS NULL"),
        postgresql_where=text("parent IS NULL"),
    ),
    # The order in which lists of runs come unless they are asked for another.
    Index(
        "idx_actions_roots_listed",
        "project",
        "domain",
        "phase",
        text("created_at DESC"),
        text("run DESC"),
        sqlite_where=text("parent IS NULL"),
        postgresql_where=text("parent IS NULL"),
    ),
    Index(
        "idx_actions_unfinished",
        "project",
        "domain",
        "run",
        "name",
        sqlite_where=text(UNFINISHED_SQL),
        postgresql_where=text(UNFINISHED_SQL),
    ),
    # The same for lists of the actions of a run.
    Index("idx_actions_listed", "project", "domain", "run", "phase", text("created_at DESC"), text("name DESC")),
    # Several servers look for what has changed (db/recent.py); with SQLite there is one.
    Index("idx_actions_updated", "updated_at").ddl_if(dialect="postgresql"),
)
"""One row an action: the only truth about it, and the work queue.

`detail` is the `ConditionAction` or `TraceAction`; `error` a `core.ExecutionError`; `value` a
`core.Literal`. `output_uri` is a prefix for tasks and a whole path for traces. `attempts` is the
number of the current attempt. `version` grows with every update and guards what a pass decided.
"""

run_labels = Table(
    "run_labels",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("run"),
    identifier("key"),
    text_column("value"),
    PrimaryKeyConstraint("project", "domain", "run", "key"),
    Index("idx_run_labels_value", "key", "value"),
)

attempts = Table(
    "attempts",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("run"),
    identifier("name"),
    Column("attempt", Integer, nullable=False),
    identifier("nonce"),
    text_column("node"),
    text_column("output_prefix"),
    Column("launched_at", BigInteger, nullable=False),
    Column("running_at", BigInteger),
    Column("ended_at", BigInteger),
    Column("archived_at", BigInteger),
    text_column("log_uri"),
    PrimaryKeyConstraint("project", "domain", "run", "name", "attempt"),
    Index(
        "idx_attempts_open",
        "project",
        "domain",
        "run",
        "name",
        sqlite_where=text("archived_at IS NULL"),
        postgresql_where=text("archived_at IS NULL"),
    ),
)
"""One row a launch: written before the launch. `archived_at IS NULL` means that something is still
owed (the process to be stopped, the log to be archived, the folder to be removed)."""

action_events = Table(
    "action_events",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("run"),
    identifier("name"),
    Column("attempt", Integer, nullable=False),
    Column("phase", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("info", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "domain", "run", "name", "attempt", "phase", "version"),
)
"""What happened to attempts, append-only: serialized `workflow.ActionEvent`."""

cache_outputs = Table(
    "cache_outputs",
    metadata,
    Column("key", BytewiseString, primary_key=True),
    text_column("output_uri"),
    Column("metadata", LargeBinary),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

cache_reservations = Table(
    "cache_reservations",
    metadata,
    Column("key", BytewiseString, primary_key=True),
    identifier("owner"),
    Column("heartbeat_seconds", Integer, nullable=False, server_default="0"),
    Column("expires_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("idx_cache_reservations_owner", "owner"),
)
"""`expires_at` is NULL for a reservation held by an action: it lives as long as the action is not
terminal. Only owners outside (callers of the CacheService) have heartbeats and expiry."""
