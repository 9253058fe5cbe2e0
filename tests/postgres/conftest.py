"""A PostgreSQL of its own for each test here: it is killed, paused and asked for strange things."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres_server import PostgresServer, reachable_folder


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    with reachable_folder() as folder:
        server = PostgresServer.create(Path(folder) / "cluster", durable=True)
        server.start()
        yield server
        server.stop()
