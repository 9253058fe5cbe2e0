"""The SDK's own uploads and downloads against the data proxy on a real port."""

from __future__ import annotations

import asyncio
from pathlib import Path

import flyte
import pytest
from flyte.remote import _data

from tests.rpc.dataproxy.conftest import World

pytestmark = pytest.mark.sdk


@pytest.fixture
async def sdk(port: int) -> None:
    await flyte.init.aio(
        endpoint=f"http://localhost:{port}", insecure=True, project="flytesnacks", domain="development"
    )


async def test_a_file_is_uploaded_and_found_under_its_uri(world: World, sdk: None, tmp_path: Path) -> None:
    file = tmp_path / "späße data.bin"
    await asyncio.to_thread(file.write_bytes, b"x" * 3_000_000)
    _, uri = await _data.upload_file.aio(file)
    assert await world.store.get(uri, limit_bytes=4_000_000) == b"x" * 3_000_000


async def test_a_directory_is_uploaded_and_its_uri_is_the_folder(world: World, sdk: None, tmp_path: Path) -> None:
    for name in ("a.txt", "b c.txt", "empty"):
        await asyncio.to_thread((tmp_path / name).write_text, "" if name == "empty" else name)
    uri = await _data.upload_dir.aio(tmp_path)
    for name in ("a.txt", "b c.txt"):
        assert await world.store.get(f"{uri}/{name}", limit_bytes=100) == name.encode()
    assert await world.store.get(f"{uri}/empty", limit_bytes=0) == b""


async def test_an_upload_beyond_the_limit_fails_with_the_reason(world: World, sdk: None, tmp_path: Path) -> None:
    file = tmp_path / "big"
    await asyncio.to_thread(file.write_bytes, b"x" * 20_000_000)
    with pytest.raises(flyte.errors.RuntimeSystemError, match=r"413.*larger than 4194304 bytes"):
        await _data.upload_file.aio(file)


async def test_an_unknown_project_fails_with_what_to_check(world: World, sdk: None, tmp_path: Path) -> None:
    world.projects.names.clear()
    file = tmp_path / "a"
    await asyncio.to_thread(file.write_bytes, b"x")
    with pytest.raises(flyte.errors.RuntimeSystemError, match="Check your project/domain/org"):
        await _data.upload_file.aio(file)
