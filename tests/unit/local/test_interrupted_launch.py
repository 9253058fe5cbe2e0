"""An attempt that is forgotten while its launch is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from flyte_binary.domain.errors import Unavailable
from flyte_binary.executor.local.backend import LocalBackend
from flyte_binary.executor.local.folders import Folders
from flyte_binary.executor.secrets import SecretRequest
from tests.fakes.local_attempts import DEADLINE_SECONDS, Attempts, Files


class SlowValues:
    """A launch waits for them before it has a folder."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()

    async def values(self, _project: str, _domain: str, names: Collection[str]) -> Mapping[str, bytes]:
        self.asked.set()
        await self.answer.wait()
        return {name: b"value" for name in names}


class FullDisk(Files):
    async def stat(self, uri: str) -> None:
        raise OSError(f"no room for {uri}")


async def test_the_folder_of_a_launch_that_fails_after_it_was_forgotten_is_told_of(tmp_path: Path) -> None:
    attempts, values = Attempts(tmp_path, "cold"), SlowValues()
    settings = replace(attempts.settings, scan_interval=timedelta(milliseconds=20))
    backend = LocalBackend(settings, FullDisk(), secrets=values)
    spec = attempts.leaf(secrets=(SecretRequest(key="token", variable="TOKEN"),))
    await backend.start()
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            launch = asyncio.create_task(backend.launch(spec))
            await values.asked.wait()
            await backend.forget(spec.id)
            changes = backend.changed()
            told = asyncio.ensure_future(anext(changes))
            values.answer.set()
            with pytest.raises(Unavailable):
                await launch
            assert list(Folders(settings.attempts).all()) == [spec.id]

            assert await told == spec.id
    finally:
        await backend.stop_serving()
