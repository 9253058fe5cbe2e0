"""SecretService behind a real Connect client and a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flyteidl2.secret.secret_connect import SecretServiceClient
from pyqwest import Client
from pyqwest.testing import ASGITransport

from flyte_binary.db.database import Database
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.secret.keys import KeyFile
from flyte_binary.secret.service import SERVICE, SecretService
from flyte_binary.secret.table import TableVault
from tests.db_fixtures import Storage
from tests.fakes.manual_clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def database(storage: Storage) -> AsyncIterator[Database]:
    database = storage.open(lambda _changes: None)
    yield database
    await database.close()


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys" / "secrets.key")


@pytest.fixture
def vault(database: Database, keys: KeyFile, clock: ManualClock) -> TableVault:
    return TableVault(database, keys, clock)


@pytest.fixture
def secrets(vault: TableVault) -> SecretServiceClient:
    app = mount([ServiceMount(SERVICE, SecretService(vault, cluster="here"))])
    return SecretServiceClient("http://secrets", http_client=Client(ASGITransport(app)))
