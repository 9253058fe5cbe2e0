"""URLs that the stores of clouds sign, used as the SDK uses them: by a plain HTTP client."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from flyte_binary.domain.errors import PermissionDenied
from flyte_binary.storage.store import ObjectStore, SignedUrl, Verb
from tests.contract.stores import STORES

CLOUDS = ["s3-versitygw", "s3-moto", "gcs", "azure"]
CHECKING = ["s3-versitygw", "azure"]
"""Those whose servers check signatures and digests."""

LIFE = timedelta(minutes=5)
CONTENT = b"the content of a code bundle"
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).digest()


@pytest.fixture(params=CLOUDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectStore]:
    async with STORES[request.param](tmp_path) as opened:
        yield opened


async def signed(
    store: ObjectStore, key: str, verb: Verb, *, md5: bytes | None = None, life: timedelta = LIFE
) -> SignedUrl:
    return await store.sign(f"{store.base_uri}/{key}", verb, lifetime=life, origin="http://unused", md5=md5)


async def put(url: SignedUrl, content: bytes, *, md5: bytes | None = None) -> httpx.Response:
    """Headers as the SDK puts them together: those of the answer, and over them its own."""
    own = {"Content-Length": str(len(content))}
    if md5 is not None:
        own["Content-MD5"] = base64.b64encode(md5).decode()
    async with httpx.AsyncClient() as client:
        return await client.put(url.url, content=content, headers={**url.headers, **own})


async def get(url: SignedUrl, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(url.url, headers=headers)


async def test_what_the_sdk_uploads_is_stored_with_its_md5(store: ObjectStore) -> None:
    url = await signed(store, "uploads/fast.tar.gz", Verb.PUT, md5=MD5)
    answer = await put(url, CONTENT, md5=MD5)
    assert answer.status_code in (200, 201, 204), answer.text
    uri = f"{store.base_uri}/uploads/fast.tar.gz"
    assert await store.get(uri, limit_bytes=100) == CONTENT
    info = await store.stat(uri, with_md5=True)
    assert info is not None
    assert (info.size_bytes, info.content_md5) == (len(CONTENT), MD5)


async def test_the_headers_are_complete_and_true(store: ObjectStore) -> None:
    url = await signed(store, "a", Verb.PUT, md5=MD5)
    text = base64.b64encode(MD5).decode()
    assert url.headers["Content-MD5"] == text
    assert [value for name, value in url.headers.items() if name.endswith("-meta-flyteContentMD5")] == [text]
    assert "Content-Length" not in url.headers


async def test_an_upload_without_a_known_md5_is_taken(store: ObjectStore) -> None:
    answer = await put(await signed(store, "a", Verb.PUT), CONTENT)
    assert answer.status_code in (200, 201, 204), answer.text
    info = await store.stat(f"{store.base_uri}/a", with_md5=True)
    assert info is not None
    assert info.content_md5 == MD5


async def test_a_link_downloads_an_object_or_a_part_of_it(store: ObjectStore) -> None:
    await store.put(f"{store.base_uri}/report.html", CONTENT)
    url = await signed(store, "report.html", Verb.GET)
    assert url.headers == {}
    assert (await get(url)).content == CONTENT
    part = await get(url, Range="bytes=4-10")
    assert (part.status_code, part.content) == (206, CONTENT[4:11])


async def test_names_of_all_kinds_go_through_a_url(store: ObjectStore) -> None:
    for name in ("späße.txt", "a b", "100%", "a?b#c", "a&b=c", "a+b", "数据", "~", "(x)'!*", "%2e"):
        key = f"names/{name}/file"
        answer = await put(await signed(store, key, Verb.PUT, md5=MD5), CONTENT, md5=MD5)
        assert answer.status_code in (200, 201, 204), f"{name}: {answer.text}"
        assert await store.get(f"{store.base_uri}/{key}", limit_bytes=100) == CONTENT, name
        assert (await get(await signed(store, key, Verb.GET))).content == CONTENT, name


async def test_nothing_outside_of_the_store_is_signed_for(store: ObjectStore) -> None:
    scheme = store.base_uri.partition("://")[0]
    with pytest.raises(PermissionDenied, match=r"storage\.allowedContainers"):
        await store.sign(f"{scheme}://another-bucket/a", Verb.PUT, lifetime=LIFE, origin="http://unused")


@pytest.mark.parametrize("store", CHECKING, indirect=True)
async def test_other_content_than_announced_is_not_stored(store: ObjectStore) -> None:
    answer = await put(await signed(store, "a", Verb.PUT, md5=MD5), b"other content", md5=MD5)
    assert answer.status_code == 400, answer.text
    assert await store.stat(f"{store.base_uri}/a") is None


@pytest.mark.parametrize("store", CHECKING, indirect=True)
async def test_a_url_is_good_for_one_object_and_one_verb(store: ObjectStore) -> None:
    url = await signed(store, "aaa", Verb.PUT)
    other = SignedUrl(url=url.url.replace("/aaa?", "/bbb?"), headers=url.headers, expires_at=url.expires_at)
    assert other.url != url.url
    assert (await put(other, CONTENT)).status_code == 403
    assert await store.stat(f"{store.base_uri}/bbb") is None
    reading = await signed(store, "aaa", Verb.GET)
    writing = SignedUrl(url=reading.url, headers=url.headers, expires_at=url.expires_at)
    assert (await put(writing, CONTENT)).status_code == 403
    assert await store.stat(f"{store.base_uri}/aaa") is None


@pytest.mark.parametrize("store", CHECKING, indirect=True)
async def test_a_url_ends_when_it_says(store: ObjectStore) -> None:
    await store.put(f"{store.base_uri}/a", CONTENT)
    url = await signed(store, "a", Verb.GET, life=timedelta(seconds=1))
    deadline = time.monotonic() + 10
    while (await get(url)).status_code != 403:
        assert time.monotonic() < deadline, "it does not end"
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("store", ["s3-versitygw"], indirect=True)
async def test_s3_refuses_a_put_without_the_headers_that_were_signed(store: ObjectStore) -> None:
    url = await signed(store, "a", Verb.PUT, md5=MD5)
    bare = SignedUrl(url=url.url, expires_at=url.expires_at)
    assert (await put(bare, CONTENT, md5=MD5)).status_code == 403
