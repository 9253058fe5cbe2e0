"""Databases with a long past, for measurements: the one that a server starts on, filled directly."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import text

from benchmarks.requests import DOMAIN, PROJECT, run_id, task_spec
from flyte_binary.composition.databases import migrate_postgres, migrate_sqlite
from flyte_binary.db.database import Database
from flyte_binary.db.postgres.connect import Address
from flyte_binary.db.postgres.database import PostgresDatabase
from flyte_binary.db.rows import ActionRow
from flyte_binary.db.sqlite import SqliteDatabase
from flyte_binary.db.tasks import digest_of
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.ids import RunId, TaskId
from flyte_binary.domain.phases import Phase
from tests.postgres_server import PostgresServer

BATCH = 1000
LONG_RUN = "long"
"""Of which there are many actions."""


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    settings: dict[str, str]
    """Of a server on it."""

    url: str = ""

    def open(self, folder: Path) -> Database:
        if self.url:
            return PostgresDatabase(Address(url=self.url), lambda _changes: None)
        return SqliteDatabase(folder / "flyte.db", lambda _changes: None)

    async def migrate(self, folder: Path) -> None:
        if self.url:
            await migrate_postgres(Address(url=self.url))
        else:
            migrate_sqlite(folder / "flyte.db")


@contextmanager
def kinds() -> Generator[list[Kind]]:
    """SQLite, and a PostgreSQL whose commits wait for the disk."""
    with tempfile.TemporaryDirectory(prefix="flyte-binary-bench-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer.create(Path(folder) / "cluster", durable=True)
        server.start()
        url = server.url("bench")
        try:
            yield [Kind("SQLite", {}), Kind("PostgreSQL", {"runs.database.postgres.url": url}, url)]
        finally:
            server.stop()


async def fill(kind: Kind, folder: Path, *, runs: int, actions: int) -> None:
    """So many finished runs, and one run of so many finished actions."""
    folder.mkdir(parents=True, exist_ok=True)
    await kind.migrate(folder)
    database = kind.open(folder)
    digest, body = digest_of(task_spec("bench.main"))
    await database.write(lambda tx: tx.specs.put(digest, body, at=1))
    row = _row(LONG_RUN, digest)
    await database.write(lambda tx: tx.actions.insert(row))

    def some_runs(tx: Transaction, start: int) -> None:
        for number in range(start, min(start + BATCH, runs)):
            at = row.created_at + number * 1000
            tx.actions.insert(replace(_row(f"r{number:07}", digest), created_at=at, ended_at=at + 5_000_000))

    def some_actions(tx: Transaction, start: int) -> None:
        for number in range(start, min(start + BATCH, actions)):
            at = row.created_at + number
            one = RunId(PROJECT, DOMAIN, LONG_RUN).action(f"c{number:07}")
            tx.actions.insert(replace(row, id=one, parent="a0", created_at=at, ended_at=at + 5_000_000))

    for start in range(0, runs, BATCH):
        await database.write(lambda tx, start=start: some_runs(tx, start))
    for start in range(0, actions, BATCH):
        await database.write(lambda tx, start=start: some_actions(tx, start))
    if kind.url:
        await database.write(lambda tx: tx.connection.execute(text("ANALYZE")))
    await database.close()


def _row(run: str, digest: str) -> ActionRow:
    identifier = run_id(run)
    at = 1_700_000_000_000_000
    return ActionRow(
        id=RunId(PROJECT, DOMAIN, identifier.name).root(),
        parent=None,
        phase=Phase.SUCCEEDED,
        action_type=1,
        task=TaskId(PROJECT, DOMAIN, "bench.main", "v1"),
        task_type="python",
        short_name="main",
        spec_digest=digest,
        input_uri="/store/in",
        run_output_base=f"/store/{run}",
        output_uri=f"/store/{run}/a0/1",
        created_at=at,
        updated_at=at,
        queued_at=at,
        ended_at=at + 5_000_000,
    )
