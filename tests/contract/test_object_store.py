"""What every object store does: disk, memory, and each cloud's on a real server."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flyte_binary.domain.errors import (
    FailedPrecondition,
    FlyteError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
)
from flyte_binary.storage.store import ObjectStore, Verb
from tests.contract.stores import NOW, STORES

ORIGIN = "http://localhost:30080"

LIKE_A_DISK = ("disk", "memory")
"""These know folders. In a cloud's store a name with slashes in it is a name, and nothing is in its way."""


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectStore]:
    async with STORES[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture(params=LIKE_A_DISK)
async def store_with_folders(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectStore]:
    async with STORES[request.param](tmp_path) as opened:
        yield opened


def at(store: ObjectStore, key: str) -> str:
    return f"{store.base_uri}/{key}"


async def test_what_was_put_is_what_is_got(store: ObjectStore) -> None:
    await store.put(at(store, "a/b/inputs.pb"), b"content")
    assert await store.get(at(store, "a/b/inputs.pb"), limit_bytes=7) == b"content"


async def test_an_empty_object_is_an_object(store: ObjectStore) -> None:
    await store.put(at(store, "outputs.pb"), b"")
    assert await store.get(at(store, "outputs.pb"), limit_bytes=0) == b""
    info = await store.stat(at(store, "outputs.pb"))
    assert info is not None
    assert info.size_bytes == 0


async def test_a_second_put_replaces_the_first(store: ObjectStore) -> None:
    await store.put(at(store, "a"), b"a longer first version")
    await store.put(at(store, "a"), b"second")
    assert await store.get(at(store, "a"), limit_bytes=100) == b"second"


async def test_concurrent_puts_leave_one_of_them_whole(store: ObjectStore) -> None:
    versions = [bytes([n]) * 100_000 for n in range(8)]
    await asyncio.gather(*(store.put(at(store, "contested"), version) for version in versions))
    assert await store.get(at(store, "contested"), limit_bytes=200_000) in versions


async def test_a_file_of_the_disk_can_be_put(store: ObjectStore, tmp_path: Path) -> None:
    source = tmp_path / "log"
    source.write_bytes(b"x" * 3_000_000)
    await store.put_file(at(store, "logs/1"), source)
    assert await store.get(at(store, "logs/1"), limit_bytes=3_000_000) == source.read_bytes()
    assert source.exists()


async def test_names_may_hold_anything_that_is_a_name(store: ObjectStore) -> None:
    for name in ("späße.txt", "a b", "100%", "a?b#c", "a&b=c", "数据", "~", "...", ".hidden", "%2e%2e"):
        await store.put(at(store, f"names/{name}"), name.encode())
        assert await store.get(at(store, f"names/{name}"), limit_bytes=100) == name.encode()


async def test_a_part_of_an_object_can_be_read(store: ObjectStore) -> None:
    await store.put(at(store, "a"), b"0123456789")
    assert await store.get(at(store, "a"), limit_bytes=3, offset=4, length=3) == b"456"
    assert await store.get(at(store, "a"), limit_bytes=9, offset=8, length=9) == b"89"
    assert await store.get(at(store, "a"), limit_bytes=9, offset=8) == b"89"
    assert await store.get(at(store, "a"), limit_bytes=9, offset=99, length=9) == b""


async def test_a_missing_object_is_not_found(store: ObjectStore) -> None:
    with pytest.raises(NotFound, match=r"none/inputs\.pb"):
        await store.get(at(store, "none/inputs.pb"), limit_bytes=1024)
    assert await store.stat(at(store, "none/inputs.pb")) is None


async def test_a_folder_is_no_object(store: ObjectStore) -> None:
    await store.put(at(store, "folder/a"), b"")
    with pytest.raises(NotFound):
        await store.get(at(store, "folder"), limit_bytes=1024)
    assert await store.stat(at(store, "folder")) is None


async def test_an_object_is_no_folder(store: ObjectStore) -> None:
    await store.put(at(store, "object"), b"")
    with pytest.raises(NotFound):
        await store.get(at(store, "object/below"), limit_bytes=1024)
    assert await store.stat(at(store, "object/below")) is None


async def test_an_object_cannot_take_the_place_of_a_folder_nor_a_folder_that_of_an_object(
    store_with_folders: ObjectStore,
) -> None:
    store = store_with_folders
    await store.put(at(store, "x/y"), b"1")
    with pytest.raises(FailedPrecondition):
        await store.put(at(store, "x"), b"2")
    with pytest.raises(FailedPrecondition):
        await store.put(at(store, "x/y/z"), b"2")
    assert await store.get(at(store, "x/y"), limit_bytes=9) == b"1"


async def test_an_object_larger_than_the_limit_is_refused_with_its_size(store: ObjectStore) -> None:
    await store.put(at(store, "big"), b"0123456789")
    with pytest.raises(ResourceExhausted, match="10 bytes"):
        await store.get(at(store, "big"), limit_bytes=9)


async def test_stat_tells_size_and_on_request_the_md5(store: ObjectStore) -> None:
    await store.put(at(store, "a"), b"hello")
    info = await store.stat(at(store, "a"))
    assert info is not None
    assert (info.size_bytes, info.content_md5) == (5, None)
    assert info.modified_at.tzinfo is not None
    with_md5 = await store.stat(at(store, "a"), with_md5=True)
    assert with_md5 is not None
    assert with_md5.content_md5 == hashlib.md5(b"hello", usedforsecurity=False).digest()


async def test_the_store_covers_its_base_and_what_is_below(store: ObjectStore) -> None:
    assert store.covers(store.base_uri)
    assert store.covers(f"{store.base_uri}/")
    assert store.covers(at(store, "a/b"))
    assert not store.covers(f"{store.base_uri}-other/a")
    assert not store.covers(at(store, "../other"))
    assert not store.covers("ftp://bucket/key")
    assert not store.covers("")


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("{base}-other/a", PermissionDenied),
        ("{base}/../outside", InvalidArgument),
        ("{base}/a/../../outside", InvalidArgument),
        ("{base}/a/./b", InvalidArgument),
        ("{base}/a//b", InvalidArgument),
        ("{base}/a\0b", InvalidArgument),
        ("relative/path", InvalidArgument),
        ("ftp://bucket/key", InvalidArgument),
        ("", InvalidArgument),
    ],
)
async def test_nothing_outside_is_read_written_or_signed(
    store: ObjectStore, uri: str, error: type[FlyteError], tmp_path: Path
) -> None:
    uri = uri.replace("{base}", store.base_uri)
    with pytest.raises(error):
        await store.get(uri, limit_bytes=10)
    with pytest.raises(error):
        await store.put(uri, b"")
    with pytest.raises(error):
        await store.put_file(uri, tmp_path)
    with pytest.raises(error):
        await store.stat(uri)
    with pytest.raises(error):
        await store.sign(uri, Verb.GET, lifetime=timedelta(minutes=1), origin=ORIGIN)


async def test_a_signed_url_says_when_it_ends(store: ObjectStore) -> None:
    before = datetime.now(UTC)
    signed = await store.sign(at(store, "a"), Verb.PUT, lifetime=timedelta(minutes=5), origin=ORIGIN, md5=b"m" * 16)
    assert signed.url.startswith("http")
    now = before if before - NOW > timedelta(minutes=1) and signed.expires_at > before else NOW
    assert abs(signed.expires_at - now - timedelta(minutes=5)) < timedelta(seconds=5)


async def uris_below(store: ObjectStore, folder: str, *, limit: int = 1000) -> list[str]:
    uris: list[str] = []
    token = ""
    while True:
        page = await store.list(folder, token=token, limit=limit)
        assert len(page.objects) <= limit
        uris += [found.uri for found in page.objects]
        token = page.next_token
        if not token:
            return uris


async def test_a_folder_lists_what_is_below_it_at_any_depth(store: ObjectStore) -> None:
    for key in ("run/a0/1/outputs.pb", "run/inputs.pb", "run2/inputs.pb", "runs", "run/a0/späße", "other/x"):
        await store.put(at(store, key), key.encode())
    page = await store.list(at(store, "run"))
    names = ("run/a0/1/outputs.pb", "run/a0/späße", "run/inputs.pb")
    assert [found.uri for found in page.objects] == [at(store, name) for name in names]
    assert [found.size_bytes for found in page.objects] == [len(name.encode()) for name in names]
    assert all(found.modified_at.tzinfo is not None for found in page.objects)
    assert page.next_token == ""
    assert len(await uris_below(store, store.base_uri)) == 6
    assert await uris_below(store, at(store, "nothing/there")) == []


async def test_pages_follow_each_other_in_the_order_of_the_names_bytes(store: ObjectStore) -> None:
    names = ["f/a", "f/a-b/x", "f/a-", "f/b/1", "f/b/2", "f/b!", "f/ü", "f/z/z/z", "f/z/z!"]
    for name in names:
        await store.put(at(store, name), b"")
    expected = [at(store, name) for name in sorted(names, key=str.encode)]
    for limit in (1, 2, 1000):
        assert await uris_below(store, at(store, "f"), limit=limit) == expected


async def test_objects_can_be_deleted_while_they_are_listed(store: ObjectStore) -> None:
    for number in range(7):
        await store.put(at(store, f"run/{number}/outputs.pb"), b"")
    token, seen = "", 0
    while True:
        page = await store.list(at(store, "run"), token=token, limit=2)
        await store.delete([found.uri for found in page.objects])
        seen += len(page.objects)
        token = page.next_token
        if not token:
            break
    assert seen == 7
    assert await uris_below(store, store.base_uri) == []


async def test_a_deleted_object_is_gone_and_deleting_it_again_is_fine(store: ObjectStore) -> None:
    await store.put(at(store, "run/a"), b"1")
    await store.put(at(store, "run/b"), b"2")
    for _ in range(2):
        await store.delete([at(store, "run/a"), at(store, "run/never")])
    assert await store.stat(at(store, "run/a")) is None
    assert await store.get(at(store, "run/b"), limit_bytes=1) == b"2"
    await store.delete([])


async def test_deleting_what_is_a_folder_deletes_nothing(store: ObjectStore) -> None:
    await store.put(at(store, "run/a"), b"1")
    await store.delete([at(store, "run")])
    assert await store.get(at(store, "run/a"), limit_bytes=1) == b"1"


async def test_nothing_outside_is_listed_or_deleted(store: ObjectStore) -> None:
    await store.put(at(store, "a"), b"1")
    outside = f"{store.base_uri}-other"
    with pytest.raises(PermissionDenied):
        await store.list(outside)
    with pytest.raises(PermissionDenied):
        await store.delete([at(store, "a"), f"{outside}/a"])
    assert await store.get(at(store, "a"), limit_bytes=1) == b"1"
