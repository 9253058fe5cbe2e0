"""One server, one SDK process and one CLI home for all tests of this folder that do not need their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sdk.command_line import Flyte
from tests.sdk.sdk import Sdk
from tests.sdk.serving import Server, serving, write_client_config
from tests.sdk.stores import DiskStore, S3Store, Store

HERE = Path(__file__).parent

STORELESS = {"test_secrets.py", "test_triggers.py", "test_cli_running.py", "test_cli_surroundings.py"}
"""What the command line does there is the same on every store, and each command is a second of loading the SDK."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.sdk)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What uses the shared server runs on each store, one after the other, unless it chooses for itself."""
    chosen = any("store" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "store" not in metafunc.fixturenames or chosen:
        return
    storeless = metafunc.definition.path.name in STORELESS and "flyte" in metafunc.fixturenames
    stores = ["disk"] if storeless else ["disk", pytest.param("s3", marks=pytest.mark.s3)]
    metafunc.parametrize("store", stores, indirect=True, scope="session")


@pytest.fixture(scope="session")
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    served = tmp_path_factory.mktemp("served")
    return DiskStore(served) if request.param == "disk" else S3Store(served)


@pytest.fixture(scope="session")
def server(store: Store) -> Iterator[Server]:
    with serving(store.served, store.settings) as server:
        yield server


@pytest.fixture(scope="session")
def client_config(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_client_config(server, tmp_path_factory.mktemp("client") / "config.yaml")


@pytest.fixture(scope="session")
def sdk(client_config: Path, store: Store) -> Iterator[Sdk]:
    sdk = Sdk(client_config, client_config.parent, store.client)
    yield sdk
    sdk.close()


@pytest.fixture(scope="session")
def flyte(client_config: Path, store: Store) -> Flyte:
    return Flyte(client_config, client_config.parent, store.client)
