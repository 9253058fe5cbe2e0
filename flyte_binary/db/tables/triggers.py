"""Triggers and their revisions."""

from __future__ import annotations

from typing import Any  # columns of one table have many types

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table, text

from flyte_binary.db.tables.columns import BytewiseText, identifier, metadata, number, text_column


def _payload() -> list[Column[Any]]:  # any: as above
    """What the head and each revision have in common."""
    return [
        identifier("project"),
        identifier("domain"),
        identifier("task_name"),
        identifier("name"),
        Column("spec", LargeBinary, nullable=False),
        Column("automation_spec", LargeBinary, nullable=False),
        number("automation_type"),
        text_column("task_version"),
        number("active"),
        Column("deployed_by", LargeBinary),
        Column("updated_by", LargeBinary),
        Column("deployed_at", BigInteger, nullable=False),
        Column("updated_at", BigInteger, nullable=False),
        Column("triggered_at", BigInteger),
        Column("deleted_at", BigInteger),
    ]


triggers = Table(
    "triggers",
    metadata,
    *_payload(),
    Column("latest_revision", BigInteger, nullable=False),
    Column("with_task", Boolean, nullable=False, server_default=text("false")),
    Column("anchor", BigInteger, nullable=False),
    Column("next_due", BigInteger),
    Column("watched_artifact", BytewiseText),
    PrimaryKeyConstraint("project", "domain", "task_name", "name"),
    Index(
        "idx_triggers_due",
        "next_due",
        sqlite_where=text("next_due IS NOT NULL"),
        postgresql_where=text("next_due IS NOT NULL"),
    ),
    Index(
        "idx_triggers_watching",
        "project",
        "domain",
        "watched_artifact",
        sqlite_where=text("watched_artifact IS NOT NULL"),
        postgresql_where=text("watched_artifact IS NOT NULL"),
    ),
    # The order in which lists of triggers come unless they are asked for another.
    Index("idx_triggers_listed", "project", "domain", text("active DESC"), text("updated_at DESC")),
)
"""One row a trigger, kept when it is deleted: its revisions go on where they were.

`spec` is a `TriggerSpec`, `automation_spec` a `TriggerAutomationSpec`, and `automation_type` its type's number;
`active` is 0 or 1, a number because lists are sorted by it. `with_task` says that it came with a task's deployment.
`next_due` is the first time that has not been fired yet, NULL while nothing is scheduled; whoever fires moves it on in
the same transaction. `anchor` is where a rate without a start of its own begins to count. `watched_artifact` is the
name of the artifact whose new versions fire it, NULL while none do.
"""

trigger_revisions = Table(
    "trigger_revisions",
    metadata,
    *_payload(),
    Column("revision", BigInteger, nullable=False),
    Column("action", Integer, nullable=False),
    PrimaryKeyConstraint("project", "domain", "task_name", "name", "revision"),
)
"""What a trigger was after each change, append-only; `action` is the number of a `TriggerRevisionAction`."""

artifact_firings = Table(
    "artifact_firings",
    metadata,
    identifier("project"),
    identifier("domain"),
    identifier("task_name"),
    identifier("name"),
    identifier("artifact"),
    identifier("version"),
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "domain", "task_name", "name", "artifact", "version"),
    Index("idx_artifact_firings_due", "created_at"),
)
"""Runs that are owed: a trigger, and the version of the artifact that it watches. Written with the version, and removed
by whoever makes the run, in the transaction that makes it."""
