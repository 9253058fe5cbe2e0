from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from flyte_binary.storage.incoming import INCOMING
from flyte_binary.storage.store import Verb
from tests.rpc.dataproxy.conftest import MAX_UPLOAD_BYTES, ORIGIN, World, until

CONTENT = b"the content"
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).digest()
FIVE_MINUTES = timedelta(minutes=5)


async def put_url(world: World, name: str = "a.txt", md5: bytes | None = MD5) -> str:
    uri = f"{world.store.base_uri}/{name}"
    return (await world.store.sign(uri, Verb.PUT, lifetime=FIVE_MINUTES, origin=ORIGIN, md5=md5)).url


async def get_url(world: World, name: str, content: bytes = CONTENT) -> str:
    uri = f"{world.store.base_uri}/{name}"
    await world.store.put(uri, content)
    return (await world.store.sign(uri, Verb.GET, lifetime=FIVE_MINUTES, origin=ORIGIN)).url


def files(world: World) -> list[Path]:
    return [path for path in Path(world.store.base_uri).rglob("*") if path.is_file()]


async def test_content_with_another_md5_is_refused_and_not_stored(world: World) -> None:
    put = await world.http.put(await put_url(world), content=b"other content")
    assert (put.status_code, "MD5" in put.text) == (400, True)
    assert files(world) == []


async def test_a_content_md5_other_than_the_signed_one_is_refused(world: World) -> None:
    other = hashlib.md5(b"other", usedforsecurity=False).digest()
    for header in (base64.b64encode(other).decode(), "no base64!"):
        put = await world.http.put(await put_url(world), content=CONTENT, headers={"Content-MD5": header})
        assert (put.status_code, "Content-MD5" in put.text) == (400, True)
    assert files(world) == []


async def test_content_that_does_not_match_its_own_content_md5_is_refused(world: World) -> None:
    header = {"Content-MD5": base64.b64encode(MD5).decode()}
    put = await world.http.put(await put_url(world, md5=None), content=b"damaged on the way", headers=header)
    assert put.status_code == 400
    assert files(world) == []


async def test_a_refused_upload_leaves_what_was_there(world: World) -> None:
    await world.http.put(await put_url(world, md5=None), content=b"old")
    await world.http.put(await put_url(world), content=b"wrong")
    assert await world.store.get(f"{world.store.base_uri}/a.txt", limit_bytes=9) == b"old"


async def test_an_altered_url_is_refused(world: World) -> None:
    url = await put_url(world)
    for altered in (url.replace("a.txt", "b.txt"), url[:-1] + ("0" if url[-1] != "0" else "1"), url.split("?")[0]):
        put = await world.http.put(altered, content=CONTENT)
        assert (put.status_code, "altered" in put.text) == (403, True)
    assert files(world) == []


async def test_a_url_to_write_does_not_allow_to_read_nor_the_other_way_round(world: World) -> None:
    url = await get_url(world, "b.txt")
    assert (await world.http.put(url, content=CONTENT)).status_code == 403
    put = await put_url(world)
    await world.http.put(put, content=CONTENT)
    assert (await world.http.get(put)).status_code == 403
    assert (await world.http.delete(put)).status_code == 405


async def test_an_expired_url_is_refused_so_that_the_sdk_sees_why(world: World) -> None:
    url = await put_url(world)
    world.clock.advance(FIVE_MINUTES)
    put = await world.http.put(url, content=CONTENT)
    assert (put.status_code, "request has expired" in put.text.lower()) == (403, True)
    assert files(world) == []


async def test_a_refusal_is_one_line_in_the_log_and_no_traceback(world: World) -> None:
    url = await put_url(world)
    with capture_logs() as lines:
        await world.http.put(url, content=b"wrong")
    assert [(line["event"], line["status"]) for line in lines] == [("signed URL refused", 400)]
    assert not any("exc_info" in line for line in lines)
    assert "sig=" not in str(lines)


async def test_content_as_large_as_the_limit_is_taken_and_one_byte_more_is_not(world: World) -> None:
    content = b"x" * MAX_UPLOAD_BYTES
    assert (await world.http.put(await put_url(world, md5=None), content=content)).status_code == 200
    for body in (content + b"x", in_pieces(content + b"x")):
        put = await world.http.put(await put_url(world, "b.txt", md5=None), content=body)
        assert put.status_code == 413
    assert [path.name for path in files(world)] == ["a.txt"]


async def in_pieces(content: bytes) -> AsyncIterator[bytes]:
    """Sent without a length in advance."""
    for start in range(0, len(content), 100_000):
        yield content[start : start + 100_000]


async def test_an_empty_object_can_be_uploaded(world: World) -> None:
    md5 = hashlib.md5(usedforsecurity=False).digest()
    assert (await world.http.put(await put_url(world, md5=md5), content=b"")).status_code == 200
    assert await world.store.get(f"{world.store.base_uri}/a.txt", limit_bytes=0) == b""


async def test_a_report_is_shown_by_a_browser_but_in_an_origin_of_its_own(world: World) -> None:
    got = await world.http.get(await get_url(world, "r1/a0/1/report.html", b"<script>1</script>"))
    assert (got.status_code, got.content) == (200, b"<script>1</script>")
    assert got.headers["content-type"] == "text/html; charset=utf-8"
    policy = got.headers["content-security-policy"]
    assert policy.startswith("sandbox")
    assert "allow-same-origin" not in policy
    assert got.headers["x-content-type-options"] == "nosniff"


async def test_a_bundle_is_downloaded_packed(world: World) -> None:
    got = await world.http.get(await get_url(world, "fast1.tar.gz", b"\x1f\x8bpacked"))
    assert (got.content, got.headers["content-type"]) == (b"\x1f\x8bpacked", "application/gzip")
    assert "content-encoding" not in got.headers


async def test_a_part_of_an_object_can_be_asked_for(world: World) -> None:
    url = await get_url(world, "a", b"0123456789")
    got = await world.http.get(url, headers={"Range": "bytes=2-4"})
    assert (got.status_code, got.content, got.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
    assert (await world.http.get(url, headers={"Range": "bytes=20-"})).status_code == 416


async def test_head_tells_size_and_version_without_the_content(world: World) -> None:
    url = await get_url(world, "a", b"0123456789")
    head = await world.http.head(url)
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "10", b"")
    assert head.headers["etag"] == (await world.http.get(url)).headers["etag"]


async def test_a_missing_object_is_not_found(world: World) -> None:
    uri = f"{world.store.base_uri}/none"
    url = (await world.store.sign(uri, Verb.GET, lifetime=FIVE_MINUTES, origin=ORIGIN)).url
    got = await world.http.get(url)
    assert (got.status_code, "there is no object" in got.text) == (404, True)


async def test_a_link_that_a_task_left_is_not_followed(world: World, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (Path(world.store.base_uri) / "report.html").symlink_to(tmp_path / "secret")
    uri = f"{world.store.base_uri}/report.html"
    url = (await world.store.sign(uri, Verb.GET, lifetime=FIVE_MINUTES, origin=ORIGIN)).url
    assert (await world.http.get(url)).status_code == 403


async def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind_and_no_traceback(
    world: World, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    target = urlsplit(await put_url(world, md5=None))
    incoming = Path(world.store.base_uri) / INCOMING
    with capture_logs() as lines:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"PUT {target.path}?{target.query} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n"
        writer.write(head.encode() + b"x" * 2_000_000)
        await writer.drain()
        await until(lambda: any(incoming.iterdir()))
        writer.close()
        await until(lambda: bool(lines) and not any(incoming.iterdir()))
    assert files(world) == []
    assert [(line["event"], line["reason"]) for line in lines] == [
        ("signed URL refused", "the client left before the end of the content")
    ]
    assert "Traceback" not in caplog.text


async def test_a_client_sees_why_its_large_upload_is_refused_and_not_a_reset(world: World, port: int) -> None:
    target = urlsplit(await put_url(world, md5=None))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    size = MAX_UPLOAD_BYTES + 1_000_000
    head = f"PUT {target.path}?{target.query} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
    writer.write(head.encode() + b"x" * size)
    async with asyncio.timeout(10):
        await writer.drain()
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"larger than" in answer
