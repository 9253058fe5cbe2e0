"""Deployed tasks and the specs they share with runs, stored once by content."""

from __future__ import annotations

import base64
import hashlib
from typing import Any  # column values of one row have many types

from google.protobuf.message import Message
from sqlalchemy import Connection, RowMapping, select

from flyte_binary.db.dialect import insert, insert_if_absent
from flyte_binary.db.rows import TaskRow
from flyte_binary.db.tables import task_specs, tasks
from flyte_binary.domain.ids import TaskId


def digest_of(spec: Message) -> tuple[str, bytes]:
    """The content address of a `TaskSpec` or `TraceSpec`, and its bytes.

    Any stable content hash serves; only a database shared with the reference would need its own.
    """
    body = spec.SerializeToString(deterministic=True)
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode().rstrip("="), body


class TaskSpecs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, digest: str, body: bytes, *, at: int) -> None:
        """Store if absent."""
        insert_if_absent(self._connection, task_specs, {"digest": digest, "spec": body, "created_at": at})

    def get(self, digest: str) -> bytes | None:
        return self._connection.execute(select(task_specs.c.spec).where(task_specs.c.digest == digest)).scalar()


class Tasks:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def upsert(self, row: TaskRow) -> None:
        """A task of the same id is replaced, its first deployment time kept."""
        values: dict[str, Any] = {
            "project": row.id.project,
            "domain": row.id.domain,
            "name": row.id.name,
            "version": row.id.version,
            "environment": row.environment,
            "function_name": row.function_name,
            "env_description": row.env_description,
            "short_description": row.short_description,
            "deployed_by": row.deployed_by,
            "is_entrypoint": row.is_entrypoint,
            "spec_digest": row.spec_digest,
            "created_at": row.created_at,
            "updated_at": row.updated_at,
        }
        replaced = {k: v for k, v in values.items() if k not in {"project", "domain", "name", "version", "created_at"}}
        statement = insert(self._connection, tasks).values(**values)
        self._connection.execute(
            statement.on_conflict_do_update(index_elements=["project", "domain", "name", "version"], set_=replaced)
        )

    def get(self, task: TaskId) -> TaskRow | None:
        statement = select(tasks).where(
            tasks.c.project == task.project,
            tasks.c.domain == task.domain,
            tasks.c.name == task.name,
            tasks.c.version == task.version,
        )
        record = self._connection.execute(statement).mappings().first()
        return None if record is None else task_row_of(record)


def task_row_of(record: RowMapping) -> TaskRow:
    return TaskRow(
        id=TaskId(record["project"], record["domain"], record["name"], record["version"]),
        environment=record["environment"],
        function_name=record["function_name"],
        env_description=record["env_description"],
        short_description=record["short_description"],
        deployed_by=record["deployed_by"],
        is_entrypoint=bool(record["is_entrypoint"]),
        spec_digest=record["spec_digest"],
        created_at=record["created_at"],
        updated_at=record["updated_at"],
    )
