"""What only the disk store has: links, pipes, half-written files, full disks."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from flyte_binary.domain.errors import InvalidArgument, NotFound, PermissionDenied, ResourceExhausted
from flyte_binary.storage.disk import DiskStore
from flyte_binary.storage.incoming import ABANDONED_SECONDS, INCOMING
from flyte_binary.storage.signed import UrlSigner
from flyte_binary.storage.store import Verb

SIGNER = UrlSigner(b"k" * 32)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
async def store(root: Path) -> AsyncIterator[DiskStore]:
    disk = DiskStore(root, SIGNER)
    await disk.prepare()
    yield disk
    disk.close()


def unfinished(root: Path) -> list[Path]:
    return list((root / INCOMING).iterdir())


async def test_a_link_to_a_file_is_not_followed(store: DiskStore, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (root / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(PermissionDenied, match="symbolic link"):
        await store.get(f"{root}/link", limit_bytes=100)
    with pytest.raises(PermissionDenied, match="symbolic link"):
        await store.stat(f"{root}/link")


async def test_a_link_to_a_folder_is_not_followed_to_read_nor_to_write(
    store: DiskStore, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (root / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(PermissionDenied, match="symbolic link"):
        await store.get(f"{root}/link/secret", limit_bytes=100)
    with pytest.raises(PermissionDenied, match="symbolic link"):
        await store.put(f"{root}/link/new", b"")
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["secret"]
    assert unfinished(root) == []


async def test_a_put_replaces_a_link_and_not_what_it_points_to(store: DiskStore, root: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (root / "link").symlink_to(tmp_path / "victim")
    await store.put(f"{root}/link", b"mine")
    assert (tmp_path / "victim").read_text() == "precious"
    assert await store.get(f"{root}/link", limit_bytes=9) == b"mine"


async def test_a_pipe_is_no_object_and_blocks_nobody(store: DiskStore, root: Path) -> None:
    os.mkfifo(root / "pipe")
    async with asyncio.timeout(5):
        with pytest.raises(NotFound):
            await store.get(f"{root}/pipe", limit_bytes=10)
    assert await store.stat(f"{root}/pipe") is None


async def test_the_root_may_be_reached_through_a_link_and_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "big-disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "big-disk")
    disk = DiskStore(tmp_path / "home", SIGNER)
    await disk.prepare()
    await disk.put(f"{tmp_path}/home/a", b"1")
    assert await disk.get(f"{tmp_path}/big-disk/a", limit_bytes=1) == b"1"
    disk.close()


async def test_other_folders_are_allowed_only_if_they_are_listed(tmp_path: Path) -> None:
    disk = DiskStore(tmp_path / "store", SIGNER, also_allowed=[tmp_path / "shared"])
    await disk.prepare()
    await disk.put(f"{tmp_path}/shared/a", b"1")
    assert (tmp_path / "shared" / "a").read_bytes() == b"1"
    with pytest.raises(PermissionDenied):
        await disk.put(f"{tmp_path}/unlisted/a", b"1")
    disk.close()


async def test_unfinished_files_cannot_be_addressed(store: DiskStore, root: Path) -> None:
    assert not store.covers(f"{root}/{INCOMING}/x")
    with pytest.raises(PermissionDenied):
        await store.put(f"{root}/{INCOMING}/x", b"")


async def test_a_name_that_is_too_long_for_the_disk_is_the_callers_mistake(store: DiskStore, root: Path) -> None:
    with pytest.raises(InvalidArgument, match="too long"):
        await store.put(f"{root}/{'x' * 300}", b"")
    assert unfinished(root) == []


async def test_a_write_that_fails_in_the_middle_leaves_the_old_object_and_no_rest(store: DiskStore, root: Path) -> None:
    await store.put(f"{root}/a", b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))  # the write fails as on a full disk
    try:
        with pytest.raises(ResourceExhausted, match="no room"):
            await store.put(f"{root}/a", b"n" * 200_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert await store.get(f"{root}/a", limit_bytes=9) == b"old"
    assert unfinished(root) == []


async def test_an_object_received_in_pieces_appears_with_the_commit(store: DiskStore, root: Path) -> None:
    async with store.receive(f"{root}/a/b") as incoming:
        await incoming.write(b"one ")
        await incoming.write(b"two")
        assert await store.stat(f"{root}/a/b") is None
        await incoming.commit()
    assert await store.get(f"{root}/a/b", limit_bytes=9) == b"one two"
    assert unfinished(root) == []


async def test_an_object_that_is_not_committed_leaves_nothing(store: DiskStore, root: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with store.receive(f"{root}/a/b") as incoming:
            await incoming.write(b"one")
            raise ZeroDivisionError
    assert unfinished(root) == []
    assert not (root / "a").exists()


async def test_what_a_killed_server_left_unfinished_is_removed_when_it_is_old(root: Path) -> None:
    (root / INCOMING).mkdir(parents=True)
    old, fresh = root / INCOMING / "old", root / INCOMING / "fresh"
    old.write_text("")
    fresh.write_text("")
    past = time.time() - ABANDONED_SECONDS - 1
    os.utime(old, (past, past))
    disk = DiskStore(root, SIGNER)
    await disk.prepare()
    assert unfinished(root) == [fresh]
    disk.close()


async def test_an_acknowledged_put_survives_kill_minus_nine(root: Path) -> None:
    program = """
import asyncio, os, signal, sys
from pathlib import Path
from flyte_binary.storage.disk import DiskStore
from flyte_binary.storage.signed import UrlSigner

async def main():
    store = DiskStore(Path(sys.argv[1]), UrlSigner(b"k" * 32))
    await store.prepare()
    await store.put(sys.argv[1] + "/runs/a/inputs.pb", b"acknowledged")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    ended = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program, str(root)], timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (root / "runs/a/inputs.pb").read_bytes() == b"acknowledged"


async def test_signing_takes_a_path_as_it_is_and_encodes_it(store: DiskStore, root: Path) -> None:
    signed = await store.sign(f"{root}/ä b%?#", Verb.GET, lifetime=timedelta(minutes=1), origin="http://h:1")
    assert f"{root}/%C3%A4%20b%25%3F%23?expires=" in signed.url


async def test_listing_leaves_out_links_pipes_and_what_is_unfinished(
    store: DiskStore, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to(tmp_path / "outside" / "secret")
    os.mkfifo(root / "pipe")
    await store.put(f"{root}/kept", b"")
    async with store.receive(f"{root}/unfinished") as incoming:
        await incoming.write(b"1")
        assert [found.uri for found in (await store.list(str(root))).objects] == [f"{root}/kept"]
    with pytest.raises(PermissionDenied, match="symbolic link"):
        await store.delete([f"{root}/file"])
    with pytest.raises(PermissionDenied, match="symbolic link"):
        await store.delete([f"{root}/folder/secret"])
    assert (tmp_path / "outside" / "secret").exists()


async def test_folders_that_a_deletion_empties_go_but_those_of_project_and_domain_stay(
    store: DiskStore, root: Path
) -> None:
    uris = [f"{root}/project/development/run/a0/1/{name}" for name in ("outputs.pb", "report.html")]
    for uri in uris:
        await store.put(uri, b"")
    await store.delete(uris[:1])
    assert (root / "project/development/run/a0/1").exists()
    await store.delete(uris[1:])
    assert list((root / "project/development").iterdir()) == []


async def test_puts_beside_deletions_that_empty_their_folder_all_arrive(store: DiskStore, root: Path) -> None:
    async def put_and_delete(number: int) -> None:
        for round_ in range(20):
            uri = f"{root}/project/development/run/{number}-{round_}"
            await store.put(uri, b"1")
            assert await store.get(uri, limit_bytes=1) == b"1"
            await store.delete([uri])

    await asyncio.gather(*(put_and_delete(number) for number in range(6)))
    assert (await store.list(str(root))).objects == []
