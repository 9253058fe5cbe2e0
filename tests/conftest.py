"""What all tests share: an environment in which nothing of the developer's own settings shows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.db_fixtures import KINDS, Storage

# A busy machine must not fail a property for being slow, and a failure must be the same one on the next run.
settings.register_profile(
    "project", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("project")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that change what the server or the SDK does are not inherited by tests and what they start."""
    for name in list(os.environ):
        if name.startswith(("FLYTE_", "FLYTECTL_", "UCTL_", "_U_")) or (name.isupper() and "." in name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DO_NOT_TRACK", "1")


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Each test that asks for it runs on both databases."""
    return Storage(request.param, tmp_path)
