"""A server that does nothing but schedule, as a process of its own: prints the name of each run that it made.

python -m tests.rpc.triggers.scheduling sqlite|postgres FILE|URL
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

import structlog

from flyte_binary.control.clock import SystemClock
from flyte_binary.db.database import Database, Publish
from flyte_binary.db.postgres.connect import Address
from flyte_binary.db.postgres.database import PostgresDatabase
from flyte_binary.db.sqlite import SqliteDatabase
from flyte_binary.domain import topics
from flyte_binary.domain.catchup import CatchupPolicy
from flyte_binary.live.hub import Hub
from flyte_binary.runs.create import RunCreator
from flyte_binary.runs.triggers.firing import Firing
from flyte_binary.runs.triggers.pace import Pace
from flyte_binary.runs.triggers.scheduler import CatchUp, TriggerScheduler
from tests.db_fixtures import SQLITE
from tests.fakes.memory_store import MemoryStore


async def main(kind: str, place: str) -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    hub, clock = Hub(), SystemClock()

    def publish(changes: set[tuple[topics.Topic, topics.Key]]) -> None:
        for topic, key in changes:
            if topic == topics.ALL_RUNS:
                sys.stdout.write(f"{key[2]}\n")
        sys.stdout.flush()
        hub.publish(changes)

    database = opened(kind, place, publish)
    scheduler = TriggerScheduler(
        database=database,
        hub=hub,
        clock=clock,
        firing=Firing(database, RunCreator(database, MemoryStore(), clock, ["development"])),
        pace=Pace(1000.0, 1000),
        catch_up=CatchUp(policy=CatchupPolicy.ALL),
        resync=timedelta(seconds=1),
    )
    await scheduler.run()


def opened(kind: str, place: str, publish: Publish) -> Database:
    if kind == SQLITE:
        return SqliteDatabase(Path(place), publish)
    return PostgresDatabase(Address(url=place), publish, readers=4)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
