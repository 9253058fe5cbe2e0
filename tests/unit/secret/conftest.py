"""A vault over a real database and a key file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flyte_binary.db.database import Database
from flyte_binary.secret.keys import KeyFile
from flyte_binary.secret.table import TableVault
from tests.db_fixtures import Storage
from tests.fakes.manual_clock import ManualClock


@pytest.fixture
async def database(storage: Storage) -> AsyncIterator[Database]:
    database = storage.open(lambda _changes: None)
    yield database
    await database.close()


@pytest.fixture
def key_path(tmp_path: Path) -> Path:
    return tmp_path / "keys" / "secrets.key"


@pytest.fixture
def vault(database: Database, key_path: Path) -> TableVault:
    return TableVault(database, KeyFile(key_path), ManualClock())
