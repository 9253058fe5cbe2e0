from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog

from tests.db_fixtures import KINDS
from tests.flows import world as world_module
from tests.flows.world import World, world_in


@pytest.fixture(autouse=True, params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every flow runs on both databases."""
    monkeypatch.setattr(world_module, "KIND", request.param)


@pytest.fixture
async def world(kind: None, tmp_path: Path) -> AsyncIterator[World]:
    async with world_in(tmp_path) as world:
        yield world


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Failures on purpose are not printed with all their frames, which takes longer than the test."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)
