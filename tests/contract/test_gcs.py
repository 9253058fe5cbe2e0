"""What only the Google store has: who signs, large files, Google's errors."""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from google.cloud.storage.retry import DEFAULT_RETRY

from flyte_binary.domain.errors import FailedPrecondition, FlyteError, NotFound, Unavailable
from flyte_binary.storage.buckets import Buckets
from flyte_binary.storage.gcs import store as gcs_module
from flyte_binary.storage.gcs.connection import GcsConnection
from flyte_binary.storage.gcs.store import GcsStore
from flyte_binary.storage.store import SignedUrl, Verb
from flyte_binary.storage.threads import StoreThreads
from tests.contract.stores import gcs_store
from tests.parts.gcs import shared_server
from tests.parts.google_iam import ACCOUNT, GoogleIam, google_iam
from tests.parts.scripted import Answer, Scripted, scripted

# Google's client leaves an answer that it does not want unread, and its connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

LIFE = timedelta(minutes=5)
MD5 = hashlib.md5(b"1", usedforsecurity=False).digest()


@pytest.fixture
def iam() -> Iterator[GoogleIam]:
    with google_iam() as server:
        yield server


@pytest.fixture
def script() -> Iterator[Scripted]:
    with scripted() as server:
        yield server


@pytest.fixture
async def at_script(script: Scripted, iam: GoogleIam, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GcsStore]:
    """On a server that says what it is told. Waits little between two attempts, and not for long."""
    quick = DEFAULT_RETRY.with_delay(initial=0.01, maximum=0.02).with_timeout(0.3)
    monkeypatch.setitem(gcs_module._CALL, "retry", quick)
    store = make_store(GcsConnection(endpoint=script.url, credentials_json=iam.service_account_json()))
    yield store
    store.close()
    gc.collect()


def make_store(connection: GcsConnection) -> GcsStore:
    return GcsStore(Buckets(schemes=("gs",), base_uri="gs://bucket/folder"), connection, threads=StoreThreads(2))


def signed_text(url: str, headers: dict[str, str], verb: str) -> bytes:
    """What the signature of a V4 URL is made over: https://cloud.google.com/storage/docs/authentication/signatures."""
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items() if name != "X-Goog-Signature"}
    canonical_query = "&".join(f"{quote(name, safe='')}={quote(query[name], safe='')}" for name in sorted(query))
    sent = {"host": parts.netloc, **{name.lower(): value for name, value in headers.items()}}
    names = query["X-Goog-SignedHeaders"].split(";")
    lines = "".join(f"{name}:{sent[name]}\n" for name in names)
    canonical = "\n".join([verb, parts.path, canonical_query, lines, ";".join(names), "UNSIGNED-PAYLOAD"])
    scope = query["X-Goog-Credential"].partition("/")[2]
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return "\n".join(["GOOG4-RSA-SHA256", query["X-Goog-Date"], scope, digest]).encode()


def check(iam: GoogleIam, url: SignedUrl, verb: str) -> None:
    query = parse_qs(urlsplit(url.url).query)
    assert query["X-Goog-Credential"][0].startswith(f"{ACCOUNT}/")
    iam.verify(bytes.fromhex(query["X-Goog-Signature"][0]), signed_text(url.url, url.headers, verb))


async def sign(store: GcsStore, verb: Verb, *, md5: bytes | None = None) -> SignedUrl:
    return await store.sign("gs://bucket/folder/ä b", verb, lifetime=LIFE, origin="http://unused", md5=md5)


async def test_a_key_in_the_credentials_signs_by_itself(at_script: GcsStore, iam: GoogleIam, script: Scripted) -> None:
    check(iam, await sign(at_script, Verb.PUT, md5=MD5), "PUT")
    check(iam, await sign(at_script, Verb.GET), "GET")
    assert (iam.requests, script.asked) == ([], [])


async def test_content_md5_and_metadata_are_signed(at_script: GcsStore) -> None:
    url = await sign(at_script, Verb.PUT, md5=MD5)
    names = parse_qs(urlsplit(url.url).query)["X-Goog-SignedHeaders"][0].split(";")
    assert names == ["content-md5", "host", "x-goog-meta-flytecontentmd5"]


async def test_iam_signs_where_the_credentials_hold_no_key(iam: GoogleIam, tmp_path: Path) -> None:
    store = make_store(
        GcsConnection(credentials_json=iam.federated_json(tmp_path), signing_account=ACCOUNT, iam_endpoint=iam.url)
    )
    url = await sign(store, Verb.PUT, md5=MD5)
    check(iam, url, "PUT")
    assert urlsplit(url.url).netloc == "storage.googleapis.com"
    assert iam.requests == ["/token", f"/v1/projects/-/serviceAccounts/{ACCOUNT}:signBlob"]
    iam.answers = [503, 429, 200]
    check(iam, await sign(store, Verb.GET), "GET")
    store.close()


async def test_who_may_not_sign_is_told_what_to_grant(iam: GoogleIam, tmp_path: Path) -> None:
    store = make_store(
        GcsConnection(
            credentials_json=iam.federated_json(tmp_path), signing_account="other@project", iam_endpoint=iam.url
        )
    )
    with pytest.raises(FailedPrecondition, match=r"iam\.serviceAccounts\.signBlob"):
        await sign(store, Verb.PUT)
    iam.answers = [503] * 4
    with pytest.raises(Unavailable, match="IAM"):
        await sign(store, Verb.PUT)
    store.close()


async def test_credentials_that_name_no_account_are_told_so(iam: GoogleIam) -> None:
    store = make_store(GcsConnection(credentials_json=iam.user_json()))
    with pytest.raises(FailedPrecondition, match=r"storage\.stow\.config\.signing_account"):
        await sign(store, Verb.PUT)
    store.close()


async def test_signed_urls_lead_to_the_public_address(iam: GoogleIam) -> None:
    key, url = iam.service_account_json(), shared_server().url
    public = GcsConnection(endpoint=url.replace("127.0.0.1", "localhost"), credentials_json=key)
    async with gcs_store(GcsConnection(endpoint=url, credentials_json=key), signing=public) as store:
        signed = await store.sign(f"{store.base_uri}/a", Verb.PUT, lifetime=LIFE, origin="http://unused")
        assert urlsplit(signed.url).hostname == "localhost"
        check(iam, signed, "PUT")


async def test_a_large_file_is_stored_and_knows_its_md5(iam: GoogleIam, tmp_path: Path) -> None:
    """Beyond 8 MiB it goes in a session of several requests."""
    source = tmp_path / "large"
    with source.open("wb") as sparse:
        sparse.seek(9 * 1024 * 1024)
        sparse.write(b"the end")
    connection = GcsConnection(endpoint=shared_server().url, credentials_json=iam.service_account_json())
    async with gcs_store(connection) as store:
        await store.put_file(f"{store.base_uri}/large", source)
        info = await store.stat(f"{store.base_uri}/large", with_md5=True)
        tail = await store.get(f"{store.base_uri}/large", limit_bytes=7, offset=9 * 1024 * 1024)
    assert info is not None
    assert info.content_md5 == hashlib.md5(source.read_bytes(), usedforsecurity=False).digest()
    assert tail == b"the end"


def error_answer(status: int, message: str) -> Answer:
    body = {"error": {"code": status, "message": message, "errors": [{"message": message}]}}
    return Answer(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


@pytest.mark.parametrize(
    ("status", "message", "error", "says"),
    [
        (404, "No such object: bucket/folder/a", NotFound, "gs://bucket/folder/a"),
        (404, "The specified bucket does not exist.", FailedPrecondition, "the bucket bucket does not exist"),
        (403, "x does not have storage.objects.get access", FailedPrecondition, "Storage Object User"),
        (401, "Invalid Credentials", FailedPrecondition, r"storage\.stow\.config\.json"),
        (503, "backend error", Unavailable, "gs://bucket/folder/a"),
        (429, "slow down", Unavailable, "gs://bucket/folder/a"),
        (412, "something new", FailedPrecondition, "something new"),
    ],
)
async def test_each_refusal_says_what_to_do(
    at_script: GcsStore, script: Scripted, status: int, message: str, error: type[FlyteError], says: str
) -> None:
    script.will(error_answer(status, message))
    with pytest.raises(error, match=says):
        await at_script.get("gs://bucket/folder/a", limit_bytes=10)


async def test_what_can_only_fail_for_the_bucket_names_it(at_script: GcsStore, script: Scripted) -> None:
    script.will(error_answer(404, "Not Found"))
    with pytest.raises(FailedPrecondition, match="the bucket bucket does not exist"):
        await at_script.put("gs://bucket/folder/a", b"1")
    with pytest.raises(FailedPrecondition, match="the bucket bucket does not exist"):
        await at_script.list("gs://bucket/folder")


async def test_a_busy_store_is_asked_again(at_script: GcsStore, script: Scripted) -> None:
    script.will(
        error_answer(503, "busy"), error_answer(500, "busy"), Answer(200, b"{}", {"Content-Type": "application/json"})
    )
    await at_script.put("gs://bucket/folder/a", b"1")
    assert len(script.asked) == 3


async def test_more_than_the_limit_is_not_asked_for(at_script: GcsStore, script: Scripted) -> None:
    script.will(Answer(206, b"0123456789", {"Content-Range": "bytes 0-9/10"}))
    assert await at_script.get("gs://bucket/folder/a", limit_bytes=10) == b"0123456789"
    assert script.asked[0].headers["range"] == "bytes=0-10"


async def test_a_bucket_that_does_not_exist_is_named_at_the_start(iam: GoogleIam) -> None:
    connection = GcsConnection(endpoint=shared_server().url, credentials_json=iam.service_account_json())
    store = GcsStore(Buckets(schemes=("gs",), base_uri="gs://no-such-bucket/x"), connection, threads=StoreThreads(1))
    with pytest.raises(FailedPrecondition, match=r"no-such-bucket does not exist.*runs\.storagePrefix"):
        await store.prepare()
    store.close()


@pytest.mark.parametrize("text", ["{", "{}", '{"type": "unheard_of"}', '{"type": "service_account"}'])
def test_json_that_holds_no_credentials_is_refused(text: str) -> None:
    with pytest.raises(FailedPrecondition, match=r"storage\.stow\.config\.json"):
        make_store(GcsConnection(credentials_json=text))
