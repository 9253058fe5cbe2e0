"""The tables, for both databases. Applied migrations repeat them; a test holds the two together.

Times are microseconds since the epoch (UTC) in BIGINT columns: the same arithmetic, order and
equality on SQLite and PostgreSQL. Text is compared bytewise on both (`COLLATE "C"`).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    text,
)

metadata = MetaData()

BytewiseText = Text().with_variant(Text(collation="C"), "postgresql")
BytewiseString = String(512).with_variant(String(512, collation="C"), "postgresql")

UNFINISHED_SQL = "phase IN (1, 2, 3, 4, 9)"
"""QUEUED, WAITING_FOR_RESOURCES, INITIALIZING, RUNNING, PAUSED."""


def _id(name: str) -> Column[str]:
    return Column(name, BytewiseText, nullable=False)


def _text(name: str) -> Column[str]:
    return Column(name, BytewiseText, nullable=False, server_default="")


def _number(name: str, default: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=str(default))


projects = Table(
    "projects",
    metadata,
    Column("identifier", BytewiseText, primary_key=True),
    _text("name"),
    _text("description"),
    Column("labels", LargeBinary),
    _number("state"),
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
    _id("project"),
    _id("domain"),
    _id("name"),
    _id("version"),
    _text("environment"),
    _text("function_name"),
    _text("env_description"),
    _text("short_description"),
    _text("deployed_by"),
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
    _id("project"),
    _id("domain"),
    _id("run"),
    _id("name"),
    Column("parent", BytewiseText),
    Column("phase", Integer, nullable=False),
    _number("action_type"),
    _text("action_group"),
    _text("task_project"),
    _text("task_domain"),
    _text("task_name"),
    _text("task_version"),
    _text("task_type"),
    _text("short_name"),
    _text("function_name"),
    _text("environment_name"),
    Column("spec_digest", BytewiseText),
    Column("detail", LargeBinary),
    _text("input_uri"),
    _text("run_output_base"),
    _text("cache_key"),
    _number("cache_status"),
    Column("run_spec", LargeBinary),
    _number("run_source"),
    _number("attempts", 1),
    _number("user_failures"),
    _number("system_failures"),
    _number("infrastructure_failures"),
    Column("queued_at", BigInteger, nullable=False),
    Column("not_before", BigInteger),
    Column("error", LargeBinary),
    _text("output_uri"),
    Column("value", LargeBinary),
    Column("signalled_by", LargeBinary),
    Column("abort_reason", BytewiseText),
    Column("aborted_by", LargeBinary),
    Column("recovered_from", LargeBinary),
    Column("relation", LargeBinary),
    _text("trigger_name"),
    _text("trigger_task_name"),
    Column("trigger_revision", BigInteger, nullable=False, server_default="0"),
    Column("created_by", LargeBinary),
    _text("created_by_subject"),
    _text("search_name"),
    Column("superseded", Boolean, nullable=False, server_default=text("false")),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    _number("version", 1),
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
)
"""One row an action: the only truth about it, and the work queue.

`detail` is the `ConditionAction` or `TraceAction`; `error` a `core.ExecutionError`; `value` a
`core.Literal`. `output_uri` is a prefix for tasks and a whole path for traces. `attempts` is the
number of the current attempt. `version` grows with every update and guards what a pass decided.
"""

run_labels = Table(
    "run_labels",
    metadata,
    _id("project"),
    _id("domain"),
    _id("run"),
    _id("key"),
    _text("value"),
    PrimaryKeyConstraint("project", "domain", "run", "key"),
    Index("idx_run_labels_value", "key", "value"),
)

attempts = Table(
    "attempts",
    metadata,
    _id("project"),
    _id("domain"),
    _id("run"),
    _id("name"),
    Column("attempt", Integer, nullable=False),
    _id("nonce"),
    _text("node"),
    _text("output_prefix"),
    Column("launched_at", BigInteger, nullable=False),
    Column("running_at", BigInteger),
    Column("ended_at", BigInteger),
    Column("archived_at", BigInteger),
    _text("log_uri"),
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
    _id("project"),
    _id("domain"),
    _id("run"),
    _id("name"),
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
    _text("output_uri"),
    Column("metadata", LargeBinary),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

cache_reservations = Table(
    "cache_reservations",
    metadata,
    Column("key", BytewiseString, primary_key=True),
    _id("owner"),
    Column("heartbeat_seconds", Integer, nullable=False, server_default="0"),
    Column("expires_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("idx_cache_reservations_owner", "owner"),
)
"""`expires_at` is NULL for a reservation held by an action: it lives as long as the action is not
terminal. Only owners outside (callers of the CacheService) have heartbeats and expiry."""
