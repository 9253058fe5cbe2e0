"""What only the S3 store has: parts, checksums, two addresses, Amazon's errors."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from flyte_binary.domain.errors import (
    FailedPrecondition,
    FlyteError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from flyte_binary.storage.buckets import Buckets
from flyte_binary.storage.s3 import client as s3_client
from flyte_binary.storage.s3.connection import S3Connection
from flyte_binary.storage.s3.store import S3Store
from flyte_binary.storage.s3.upload import part_size
from flyte_binary.storage.store import Verb
from flyte_binary.storage.threads import StoreThreads
from tests.contract.stores import PART_BYTES, new_bucket, s3_store, versitygw_connection
from tests.parts.scripted import Answer, Scripted, scripted

ETAG = '"0cc175b9c0f1b6a831c399e269772661"'
LIFE = timedelta(minutes=5)
GIB = 1024**3


@pytest.fixture
def script() -> Iterator[Scripted]:
    with scripted() as server:
        yield server


@pytest.fixture
def at_script(script: Scripted, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Store]:
    """On a server that says what it is told. Nothing waits between two attempts."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
    store = make_store(S3Connection(endpoint=script.url, region="us-east-1", access_key_id="a", secret_key="s"))
    yield store
    store.close()


def make_store(connection: S3Connection, **options: S3Connection | None) -> S3Store:
    buckets = Buckets(schemes=("s3",), base_uri="s3://bucket/folder")
    return S3Store(buckets, connection, threads=StoreThreads(2), **options)


def error_answer(status: int, code: str) -> Answer:
    return Answer(status, f"<Error><Code>{code}</Code><Message>because</Message></Error>".encode())


async def test_a_large_file_goes_in_parts_and_knows_its_md5(tmp_path: Path) -> None:
    source = tmp_path / "large"
    with source.open("wb") as sparse:
        sparse.seek(2 * PART_BYTES + 7)
        sparse.write(b"the end")
    async with s3_store(versitygw_connection()) as store:
        uri = f"{store.base_uri}/large"
        await store.put_file(uri, source)
        info = await store.stat(uri, with_md5=True)
        tail = await store.get(uri, limit_bytes=7, offset=2 * PART_BYTES + 7)
    assert info is not None
    assert info.size_bytes == source.stat().st_size
    assert info.content_md5 == hashlib.md5(source.read_bytes(), usedforsecurity=False).digest()
    assert tail == b"the end"


async def test_an_upload_in_parts_that_fails_leaves_nothing_to_pay_for(
    at_script: S3Store, script: Scripted, tmp_path: Path
) -> None:
    source = tmp_path / "large"
    with source.open("wb") as sparse:
        sparse.truncate(17 * 1024 * 1024)
    begun = Answer(200, b"<InitiateMultipartUploadResult><UploadId>the-id</UploadId></InitiateMultipartUploadResult>")
    script.will(begun, Answer(200, headers={"ETag": ETAG}), error_answer(403, "AccessDenied"), Answer(204))
    with pytest.raises(FailedPrecondition):
        await at_script.put_file("s3://bucket/folder/large", source)
    last = script.asked[-1]
    assert (last.method, "uploadId=the-id" in last.path) == ("DELETE", True)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1, 16), (100 * GIB, 16), (10_000 * 16 * 1024**2, 16), (5 * 1024 * GIB, None)],
)
def test_parts_are_few_enough_for_s3_however_large_the_file(size: int, expected: int | None) -> None:
    part = part_size(size, 16 * 1024 * 1024)
    assert expected is None or part == expected * 1024 * 1024
    assert -(-size // part) <= 10_000
    assert 5 * 1024**2 <= part <= 5 * GIB


async def test_checksums_that_compatibles_do_not_know_are_not_sent(at_script: S3Store, script: Scripted) -> None:
    script.will(Answer(200, headers={"ETag": ETAG}))
    await at_script.put("s3://bucket/folder/a", b"a")
    (asked,) = script.asked
    assert asked.headers["content-md5"] == "DMF1ucDxtqgxw5niaXcmYQ=="
    assert [name for name in asked.headers if name.startswith("x-amz-checksum") or name == "x-amz-trailer"] == []
    assert asked.path == "/bucket/folder/a"


async def test_signed_urls_lead_to_the_public_address(script: Scripted) -> None:
    connection = versitygw_connection()
    public = S3Connection(
        endpoint=connection.endpoint.replace("127.0.0.1", "localhost"),
        region=connection.region,
        access_key_id=connection.access_key_id,
        secret_key=connection.secret_key,
    )
    async with s3_store(connection, signing=public) as store:
        url = await store.sign(f"{store.base_uri}/a", Verb.PUT, lifetime=LIFE, origin="http://unused")
        assert urlsplit(url.url).hostname == "localhost"
        async with httpx.AsyncClient() as client:
            assert (await client.put(url.url, content=b"1")).status_code == 200
        assert await store.get(f"{store.base_uri}/a", limit_bytes=1) == b"1"


async def test_a_signed_url_names_the_region_and_path_style_address_of_the_store(
    at_script: S3Store, script: Scripted
) -> None:
    url = urlsplit((await at_script.sign("s3://bucket/folder/a", Verb.GET, lifetime=LIFE, origin="http://unused")).url)
    query = parse_qs(url.query)
    assert f"{url.scheme}://{url.netloc}{url.path}" == f"{script.url}/bucket/folder/a"
    assert query["X-Amz-Expires"] == ["300"]
    assert query["X-Amz-Credential"][0].split("/")[2] == "us-east-1"
    assert script.asked == []


async def test_amazons_own_address_has_the_bucket_in_its_name() -> None:
    store = make_store(S3Connection(region="eu-central-1", access_key_id="a", secret_key="s", token="t"))
    url = urlsplit((await store.sign("s3://bucket/folder/a", Verb.GET, lifetime=LIFE, origin="http://unused")).url)
    store.close()
    assert url.netloc == "bucket.s3.eu-central-1.amazonaws.com"
    assert parse_qs(url.query)["X-Amz-Security-Token"] == ["t"]


async def test_signatures_of_old_are_made_where_asked_for(script: Scripted) -> None:
    store = make_store(S3Connection(endpoint=script.url, access_key_id="a", secret_key="s", v2_signing=True))
    url = urlsplit((await store.sign("s3://bucket/folder/a", Verb.GET, lifetime=LIFE, origin="http://unused")).url)
    store.close()
    assert {"AWSAccessKeyId", "Signature", "Expires"} <= parse_qs(url.query).keys()


@pytest.mark.parametrize(
    ("status", "code", "error", "says"),
    [
        (404, "NoSuchKey", NotFound, "s3://bucket/folder/a"),
        (404, "NoSuchBucket", FailedPrecondition, "the bucket bucket does not exist"),
        (403, "AccessDenied", FailedPrecondition, "s3:GetObject"),
        (403, "SignatureDoesNotMatch", FailedPrecondition, "secret_key"),
        (403, "InvalidAccessKeyId", FailedPrecondition, "access_key_id"),
        (400, "ExpiredToken", FailedPrecondition, "token"),
        (301, "PermanentRedirect", FailedPrecondition, r"storage\.stow\.config\.region"),
        (400, "AuthorizationHeaderMalformed", FailedPrecondition, r"storage\.stow\.config\.region"),
        (503, "SlowDown", Unavailable, "busy"),
        (500, "InternalError", Unavailable, "out of order"),
        (507, "XMinioStorageFull", ResourceExhausted, "no room"),
        (400, "EntityTooLarge", ResourceExhausted, "larger"),
        (400, "KeyTooLongError", InvalidArgument, "name"),
        (409, "SomethingNew", FailedPrecondition, "SomethingNew"),
    ],
)
async def test_each_refusal_says_what_to_do(
    at_script: S3Store, script: Scripted, status: int, code: str, error: type[FlyteError], says: str
) -> None:
    script.will(error_answer(status, code))
    with pytest.raises(error, match=says):
        await at_script.get("s3://bucket/folder/a", limit_bytes=10)
    with pytest.raises(error, match=says):
        await at_script.put("s3://bucket/folder/a", b"1")


async def test_a_head_that_is_refused_is_no_missing_object(at_script: S3Store, script: Scripted) -> None:
    script.will(Answer(403))
    with pytest.raises(FailedPrecondition, match="s3:ListBucket"):
        await at_script.stat("s3://bucket/folder/a")


async def test_a_busy_store_is_asked_again(at_script: S3Store, script: Scripted) -> None:
    script.will(error_answer(503, "SlowDown"), Answer(500), Answer(200, b"1", {"ETag": ETAG}))
    assert await at_script.get("s3://bucket/folder/a", limit_bytes=1) == b"1"
    assert len(script.asked) == 3


async def test_an_answer_that_breaks_off_is_asked_for_again(at_script: S3Store, script: Scripted) -> None:
    cut = Answer(200, b"0123456789", {"ETag": ETAG}, cut=4)
    script.will(cut, cut, Answer(200, b"0123456789", {"ETag": ETAG}))
    assert await at_script.get("s3://bucket/folder/a", limit_bytes=10) == b"0123456789"
    script.will(cut)
    with pytest.raises(Unavailable, match="s3://bucket/folder/a"):
        await at_script.get("s3://bucket/folder/a", limit_bytes=10)
    assert len(script.asked) == s3_client.ATTEMPTS


async def test_more_than_the_limit_is_not_read(at_script: S3Store, script: Scripted) -> None:
    script.will(Answer(200, b"0", {"ETag": ETAG, "Content-Length": str(100 * GIB)}, cut=0))
    with pytest.raises(ResourceExhausted, match=f"{100 * GIB} bytes"):
        await at_script.get("s3://bucket/folder/a", limit_bytes=10)


async def test_a_store_that_cannot_be_reached_is_unavailable(script: Scripted, at_script: S3Store) -> None:
    nowhere = make_store(S3Connection(endpoint="http://127.0.0.1:9", access_key_id="a", secret_key="s"))
    with pytest.raises(Unavailable, match="did not answer"):
        await nowhere.prepare()
    nowhere.close()


@pytest.mark.parametrize("etag", ['"0cc175b9c0f1b6a831c399e269772661-2"', '"opaque"', ETAG])
async def test_an_md5_that_the_store_does_not_tell_is_found_by_reading(
    at_script: S3Store, script: Scripted, etag: str
) -> None:
    """The tag of an object in parts, or of one that is encrypted with a key of its own, is no MD5."""
    head = Answer(
        200,
        headers={
            "ETag": etag,
            "Content-Length": "1",
            "Last-Modified": "Mon, 30 Nov 2026 12:00:00 GMT",
            "x-amz-server-side-encryption": "aws:kms",
        },
    )
    script.will(head, Answer(200, b"b", {"ETag": etag}))
    info = await at_script.stat("s3://bucket/folder/a", with_md5=True)
    assert info is not None
    assert info.content_md5 == hashlib.md5(b"b", usedforsecurity=False).digest()


async def test_a_store_that_deletes_only_one_object_at_a_time_is_asked_so(at_script: S3Store, script: Scripted) -> None:
    script.will(error_answer(501, "NotImplemented"), Answer(204))
    await at_script.delete([f"s3://bucket/folder/{number}" for number in range(3)])
    assert [asked.path for asked in script.asked if asked.method == "DELETE"] == [
        f"/bucket/folder/{number}" for number in range(3)
    ]


async def test_a_deletion_that_is_refused_in_part_names_the_object(at_script: S3Store, script: Scripted) -> None:
    refused = b"<Error><Key>folder/b</Key><Code>AccessDenied</Code><Message>no</Message></Error>"
    script.will(Answer(200, b"<DeleteResult>" + refused + b"</DeleteResult>"))
    with pytest.raises(FailedPrecondition, match=r"s3://bucket/folder/b.*s3:DeleteObject"):
        await at_script.delete(["s3://bucket/folder/a", "s3://bucket/folder/b"])


async def test_many_objects_are_deleted_in_calls_of_a_thousand(at_script: S3Store, script: Scripted) -> None:
    script.will(Answer(200, b"<DeleteResult></DeleteResult>"))
    await at_script.delete([f"s3://bucket/folder/{number}" for number in range(2500)])
    assert [asked.method for asked in script.asked] == ["POST"] * 3


async def test_a_bucket_that_does_not_exist_is_named_at_the_start() -> None:
    store = make_store(versitygw_connection())
    with pytest.raises(FailedPrecondition, match=r"the bucket bucket does not exist.*runs\.storagePrefix"):
        await store.prepare()
    store.close()


async def test_wrong_keys_are_told_at_the_start() -> None:
    right = versitygw_connection()
    bucket = new_bucket(right)
    for key, secret in ((right.access_key_id, "wrong"), ("wrong", right.secret_key)):
        wrong = S3Connection(endpoint=right.endpoint, region=right.region, access_key_id=key, secret_key=secret)
        store = S3Store(Buckets(schemes=("s3",), base_uri=f"s3://{bucket}"), wrong, threads=StoreThreads(1))
        with pytest.raises(FailedPrecondition, match=r"storage\.stow\.config\.access_key_id"):
            await store.prepare()
        store.close()


async def test_no_keys_at_all_are_told_at_the_start(script: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    store = make_store(S3Connection(endpoint=script.url))
    with pytest.raises(FailedPrecondition, match="no credentials"):
        await store.prepare()
    store.close()


async def test_other_buckets_may_be_used_when_they_are_allowed() -> None:
    connection = versitygw_connection()
    own, allowed, foreign = (new_bucket(connection) for _ in range(3))
    buckets = Buckets(schemes=("s3",), base_uri=f"s3://{own}/flyte", also_allowed=[allowed])
    store = S3Store(buckets, connection, threads=StoreThreads(2))
    name = secrets.token_hex(4)
    await store.put(f"s3://{allowed}/{name}", b"1")
    assert await store.get(f"s3://{allowed}/{name}", limit_bytes=1) == b"1"
    assert not store.covers(f"s3://{foreign}/{name}")
    store.close()
