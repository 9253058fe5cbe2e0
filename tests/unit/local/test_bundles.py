from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flyte_binary.domain.errors import NotFound, PermissionDenied, Unavailable
from flyte_binary.executor.local.bundles import Bundles
from flyte_binary.executor.local.program import platforms
from flyte_binary.executor.local.settings import LocalSettings
from flyte_binary.executor.local.threads import LocalThreads
from flyte_binary.executor.local.unpack import InvalidBundle
from flyte_binary.storage.store import ObjectInfo
from tests.fakes.local_attempts import Files, tarball

ARGV = ("a0", "--tgz", "x", "--dest", ".")


class Cache:
    def __init__(self, tmp_path: Path, **settings: int) -> None:
        self.tmp_path = tmp_path
        self.settings = LocalSettings(folder=tmp_path / "data", endpoint="", **settings)  # type: ignore[arg-type]
        self.store = Files()
        self.threads = LocalThreads()
        self.bundles = Bundles(self.settings, self.store, platforms.choose(), self.threads)

    def bundle(self, name: str, **members: str) -> str:
        return str(tarball(self.tmp_path / name, {f"{path}.py": text for path, text in members.items()}))

    def work(self, name: str = "work") -> Path:
        folder = self.tmp_path / name
        folder.mkdir()
        return folder

    def cached(self) -> list[Path]:
        return sorted(self.settings.bundles.iterdir())


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    cache = Cache(tmp_path)
    yield cache
    cache.threads.close()


async def test_a_tarball_is_unpacked_once_and_copied_with_the_sdks_marker(cache: Cache) -> None:
    uri = cache.bundle("fast1.tar.gz", mod="A = 1")
    for name in ("one", "two"):
        await cache.bundles.place(uri, ARGV, cache.work(name))

    assert cache.store.fetched == [uri]
    for name in ("one", "two"):
        work = cache.tmp_path / name
        assert sorted(path.name for path in work.iterdir()) == [".fast1.tar.gz.extracted", "mod.py"]
        assert (work / "mod.py").read_text() == "A = 1"
        assert (work / "mod.py").stat().st_mtime == 347155200, "a compiled file that came along stays valid"


async def test_a_pickle_is_placed_with_its_own_marker(cache: Cache) -> None:
    pickle = cache.tmp_path / "abc.pkl.gz"
    pickle.write_bytes(b"pickled")
    await cache.bundles.place(str(pickle), ("a0", "--pkl", "x", "--dest", "."), cache.work())

    assert sorted(path.name for path in (cache.tmp_path / "work").iterdir()) == [".abc.pkl.gz.done", "abc.pkl.gz"]
    assert (cache.tmp_path / "work/abc.pkl.gz").read_bytes() == b"pickled"


async def test_user_code_that_writes_over_its_copy_does_not_reach_the_cache(cache: Cache) -> None:
    uri = cache.bundle("fast1.tar.gz", mod="A = 1")
    await cache.bundles.place(uri, ARGV, cache.work("one"))
    (cache.tmp_path / "one/mod.py").write_text("A = 2")
    await cache.bundles.place(uri, ARGV, cache.work("two"))

    assert (cache.tmp_path / "two/mod.py").read_text() == "A = 1"
    assert (cache.cached()[0] / "mod.py").stat().st_mode & 0o222 == 0


async def test_many_first_users_fetch_once(cache: Cache) -> None:
    uri = cache.bundle("fast1.tar.gz", mod="A = 1")
    works = [cache.work(f"w{n}") for n in range(8)]
    await asyncio.gather(*(cache.bundles.place(uri, ARGV, work) for work in works))

    assert cache.store.fetched == [uri]
    assert all((work / "mod.py").exists() for work in works)


async def test_the_same_uri_with_new_content_is_a_new_version(cache: Cache) -> None:
    uri = cache.bundle("fast1.tar.gz", mod="A = 1")
    await cache.bundles.place(uri, ARGV, cache.work("one"))
    cache.bundle("fast1.tar.gz", mod="A = 2")
    os.utime(uri, (1, 1))
    await cache.bundles.place(uri, ARGV, cache.work("two"))

    assert (cache.tmp_path / "two/mod.py").read_text() == "A = 2"


@pytest.mark.parametrize("argv", [("a0", "--tgz", "x"), ("a0", "--dest", "/root"), ("a0", "--dest", "sub")])
async def test_another_destination_is_left_to_the_sdk(cache: Cache, argv: tuple[str, ...]) -> None:
    await cache.bundles.place(cache.bundle("fast1.tar.gz", mod="A = 1"), argv, cache.work())

    assert list((cache.tmp_path / "work").iterdir()) == []


async def test_without_a_bundle_nothing_happens(cache: Cache) -> None:
    await cache.bundles.place("", ARGV, cache.work())

    assert cache.store.fetched == []


async def test_a_missing_bundle_is_invalid_and_named(cache: Cache) -> None:
    with pytest.raises(InvalidBundle, match=r"/no/where\.tar\.gz is not in the object store"):
        await cache.bundles.place("/no/where.tar.gz", ARGV, cache.work())


async def test_a_broken_bundle_leaves_nothing_in_the_cache(cache: Cache) -> None:
    broken = cache.tmp_path / "broken.tar.gz"
    broken.write_bytes(b"no tar")
    cache.settings.bundles.mkdir(parents=True)
    with pytest.raises(InvalidBundle, match="not a tar archive"):
        await cache.bundles.place(str(broken), ARGV, cache.work())

    assert cache.cached() == []


async def test_an_archive_over_the_limit_is_invalid(tmp_path: Path) -> None:
    cache = Cache(tmp_path, bundle_archive_limit_bytes=10)
    with pytest.raises(InvalidBundle, match="larger than 10 bytes"):
        await cache.bundles.place(cache.bundle("fast1.tar.gz", mod="A = 1"), ARGV, cache.work())
    cache.threads.close()


@pytest.mark.parametrize(
    ("error", "expected"), [(Unavailable("later"), Unavailable), (PermissionDenied("no"), InvalidBundle)]
)
async def test_a_store_that_is_away_is_no_fault_of_the_bundle(
    cache: Cache, error: Exception, expected: type[Exception]
) -> None:
    async def stat(_uri: str) -> ObjectInfo | None:
        raise error

    cache.store.stat = stat  # type: ignore[method-assign]
    with pytest.raises(expected):
        await cache.bundles.place("/some/fast.tar.gz", ARGV, cache.work())


async def test_a_bundle_that_goes_between_the_look_and_the_fetch_is_invalid(cache: Cache) -> None:
    uri = cache.bundle("fast1.tar.gz", mod="A = 1")

    async def get(_uri: str, *, limit_bytes: int) -> bytes:
        raise NotFound("gone")

    cache.store.get = get  # type: ignore[method-assign]
    with pytest.raises(InvalidBundle, match="gone"):
        await cache.bundles.place(uri, ARGV, cache.work())


async def test_the_cache_stays_within_its_size_and_drops_what_was_used_least_recently(tmp_path: Path) -> None:
    cache = Cache(tmp_path, bundle_cache_bytes=250)
    uris = [cache.bundle(f"fast{n}.tar.gz", mod="#" * 100) for n in range(3)]
    for n, uri in enumerate([uris[0], uris[1], uris[0], uris[2]]):
        await cache.bundles.place(uri, ARGV, cache.work(f"w{n}"))

    assert len(cache.cached()) == 2
    await cache.bundles.place(uris[0], ARGV, cache.work("again"))
    await cache.bundles.place(uris[1], ARGV, cache.work("anew"))
    assert cache.store.fetched == [*uris, uris[1]]
    cache.threads.close()


async def test_a_new_server_uses_what_an_earlier_one_unpacked(cache: Cache, tmp_path: Path) -> None:
    uri = cache.bundle("fast1.tar.gz", mod="A = 1")
    await cache.bundles.place(uri, ARGV, cache.work("one"))
    (cache.settings.bundles / ".half-done").mkdir()
    later = Cache(tmp_path)
    await later.bundles.prepare()
    await later.bundles.place(uri, ARGV, cache.work("two"))

    assert later.store.fetched == []
    assert (tmp_path / "two/mod.py").read_text() == "A = 1"
    assert os.access(tmp_path / "two/mod.py", os.W_OK)
    assert [path.name for path in later.cached() if path.name.startswith(".")] == []
    later.threads.close()


async def test_a_cache_that_someone_emptied_is_filled_again(cache: Cache) -> None:
    uri = cache.bundle("fast1.tar.gz", mod="A = 1")
    await cache.bundles.place(uri, ARGV, cache.work("one"))
    for path in cache.cached()[0].iterdir():
        path.unlink()
    with pytest.raises(Unavailable, match="unpacked again"):
        await cache.bundles.place(uri, ARGV, cache.work("two"))
    await cache.bundles.place(uri, ARGV, cache.work("three"))

    assert (cache.tmp_path / "three/mod.py").exists()
