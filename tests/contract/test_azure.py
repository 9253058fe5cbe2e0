"""What only the Azure store has: user delegation, blocks, the two forms of its URIs, Azure's errors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from azure.storage.blob import ExponentialRetry

from flyte_binary.domain.errors import FailedPrecondition, FlyteError, NotFound, ResourceExhausted, Unavailable
from flyte_binary.storage.azure import client as azure_client
from flyte_binary.storage.azure.connection import AzureConnection
from flyte_binary.storage.azure.store import AzureStore
from flyte_binary.storage.buckets import Buckets
from flyte_binary.storage.store import Verb
from flyte_binary.storage.threads import StoreThreads
from tests.contract.stores import PART_BYTES, azure_store, azurite_connection
from tests.parts import azurite
from tests.parts.azurite_with_tokens import StorageToken, azurite_with_tokens
from tests.parts.scripted import Answer, Scripted, scripted

LIFE = timedelta(minutes=5)
MD5 = hashlib.md5(b"1", usedforsecurity=False).digest()


@pytest.fixture
def script() -> Iterator[Scripted]:
    with scripted() as server:
        yield server


@pytest.fixture
def at_script(script: Scripted, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureStore]:
    """On a server that says what it is told. Nothing waits between two attempts."""

    def at_once(**options: float) -> ExponentialRetry:
        return ExponentialRetry(**{**options, "initial_backoff": 0, "increment_base": 0, "random_jitter_range": 0})

    monkeypatch.setattr(azure_client, "ExponentialRetry", at_once)
    store = make_store(AzureConnection(account="account", key=azurite.KEY, endpoint=script.url))
    yield store
    store.close()


def make_store(connection: AzureConnection) -> AzureStore:
    buckets = Buckets(
        schemes=("abfs", "abfss"), base_uri="abfs://container/folder", account_host=connection.host_in_uris
    )
    return AzureStore(buckets, connection, threads=StoreThreads(2))


async def test_urls_are_signed_by_a_key_that_azure_lends(monkeypatch: pytest.MonkeyPatch) -> None:
    with azurite_with_tokens() as server:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(server.certificate))
        connection = AzureConnection(account=azurite.ACCOUNT, endpoint=f"{server.url}/{azurite.ACCOUNT}")
        async with azure_store(connection, credential=StorageToken()) as store:
            uri = f"{store.base_uri}/a"
            url = await store.sign(uri, Verb.PUT, lifetime=LIFE, origin="http://unused", md5=MD5)
            again = await store.sign(uri, Verb.GET, lifetime=LIFE, origin="http://unused")
            query = parse_qs(urlsplit(url.url).query)
            assert {"skoid", "sktid", "ske"} <= query.keys()
            assert query["spr"] == ["https"]
            assert parse_qs(urlsplit(again.url).query)["ske"] == query["ske"], "the key is used again"
            async with httpx.AsyncClient(verify=server.tls()) as client:
                assert (await client.put(url.url, content=b"1", headers=url.headers)).status_code == 201
                assert (await client.get(again.url)).content == b"1"
                altered = url.url.replace("/a?", "/b?")
                assert (await client.put(altered, content=b"1", headers=url.headers)).status_code == 403


async def test_signed_urls_lead_to_the_public_address() -> None:
    connection = azurite_connection()
    public = AzureConnection(
        account=connection.account, key=connection.key, endpoint=connection.endpoint.replace("127.0.0.1", "localhost")
    )
    async with azure_store(connection, signing=public) as store:
        url = await store.sign(f"{store.base_uri}/a", Verb.PUT, lifetime=LIFE, origin="http://unused")
        assert urlsplit(url.url).hostname == "localhost"
        async with httpx.AsyncClient() as client:
            assert (await client.put(url.url, content=b"1", headers=url.headers)).status_code == 201
        assert await store.get(f"{store.base_uri}/a", limit_bytes=1) == b"1"


async def test_urls_are_good_for_clients_whose_clock_is_slow() -> None:
    store = make_store(AzureConnection(account="account", key=azurite.KEY))
    url = await store.sign("abfs://container/folder/a", Verb.PUT, lifetime=LIFE, origin="http://unused", md5=MD5)
    store.close()
    parts = urlsplit(url.url)
    query = parse_qs(parts.query)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == "https://account.blob.core.windows.net/container/folder/a"
    assert query["st"][0] < query["se"][0]
    assert (query["sp"], query["spr"], query["sr"]) == (["cw"], ["https"], ["b"])
    assert url.headers["x-ms-blob-type"] == "BlockBlob"


async def test_a_large_file_goes_in_blocks_and_knows_its_md5(tmp_path: Path) -> None:
    source = tmp_path / "large"
    with source.open("wb") as sparse:
        sparse.seek(2 * PART_BYTES + 7)
        sparse.write(b"the end")
    async with azure_store(azurite_connection()) as store:
        await store.put_file(f"{store.base_uri}/large", source)
        info = await store.stat(f"{store.base_uri}/large", with_md5=True)
        tail = await store.get(f"{store.base_uri}/large", limit_bytes=7, offset=2 * PART_BYTES + 7)
    assert info is not None
    assert info.content_md5 == hashlib.md5(source.read_bytes(), usedforsecurity=False).digest()
    assert tail == b"the end"


async def test_both_forms_of_a_uri_mean_the_same_blob() -> None:
    connection = AzureConnection(account="account", key=azurite.KEY)
    store = make_store(connection)
    assert store.covers("abfs://container/folder/a")
    assert store.covers("abfss://container@account.dfs.core.windows.net/folder/a")
    assert not store.covers("abfs://container@other.dfs.core.windows.net/folder/a")
    assert not store.covers("abfs://container@account.dfs.core.windows.net/elsewhere/a")
    store.close()


def error_answer(status: int, code: str) -> Answer:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>because</Message></Error>".encode()
    return Answer(status, body, {"x-ms-error-code": code, "Content-Type": "application/xml"})


@pytest.mark.parametrize(
    ("status", "code", "error", "says"),
    [
        (404, "BlobNotFound", NotFound, "abfs://container/folder/a"),
        (404, "ContainerNotFound", FailedPrecondition, "the container container does not exist"),
        (403, "AuthorizationPermissionMismatch", FailedPrecondition, "Storage Blob Data Contributor"),
        (403, "AuthenticationFailed", FailedPrecondition, r"storage\.stow\.config\.key"),
        (401, "NoAuthenticationInformation", FailedPrecondition, r"storage\.stow\.config\.key"),
        (413, "RequestBodyTooLarge", ResourceExhausted, "larger"),
        (503, "ServerBusy", Unavailable, "busy"),
        (500, "InternalError", Unavailable, "out of order"),
        (409, "SomethingNew", FailedPrecondition, "SomethingNew"),
    ],
)
async def test_each_refusal_says_what_to_do(
    at_script: AzureStore, script: Scripted, status: int, code: str, error: type[FlyteError], says: str
) -> None:
    script.will(error_answer(status, code))
    with pytest.raises(error, match=says):
        await at_script.get("abfs://container/folder/a", limit_bytes=10)
    with pytest.raises(error, match=says):
        await at_script.put("abfs://container/folder/a", b"1")


async def test_a_busy_store_is_asked_again(at_script: AzureStore, script: Scripted) -> None:
    stored = Answer(201, headers={"ETag": '"1"', "Last-Modified": "Mon, 30 Nov 2026 12:00:00 GMT"})
    script.will(error_answer(503, "ServerBusy"), error_answer(500, "InternalError"), stored)
    await at_script.put("abfs://container/folder/a", b"1")
    assert len(script.asked) == 3


async def test_a_folder_of_a_hierarchical_account_is_no_object(at_script: AzureStore, script: Scripted) -> None:
    script.will(
        Answer(
            200,
            headers={
                "ETag": '"1"',
                "Last-Modified": "Mon, 30 Nov 2026 12:00:00 GMT",
                "Content-Length": "0",
                "x-ms-blob-type": "BlockBlob",
                "x-ms-meta-hdi_isfolder": "true",
            },
        )
    )
    assert await at_script.stat("abfs://container/folder") is None


async def test_a_container_that_does_not_exist_is_named_at_the_start() -> None:
    store = make_store(azurite_connection())
    with pytest.raises(FailedPrecondition, match=r"the container container does not exist.*runs\.storagePrefix"):
        await store.prepare()
    store.close()


async def test_a_wrong_key_is_told_at_the_start() -> None:
    right = azurite_connection()
    wrong = AzureConnection(account=right.account, key="d3Jvbmc=", endpoint=right.endpoint)
    store = make_store(wrong)
    with pytest.raises(FailedPrecondition, match=r"storage\.stow\.config\.key"):
        await store.prepare()
    store.close()


async def test_a_store_that_cannot_be_reached_is_unavailable(at_script: AzureStore) -> None:
    nowhere = make_store(AzureConnection(account="account", key=azurite.KEY, endpoint="http://127.0.0.1:9/account"))
    with pytest.raises(Unavailable, match="did not answer"):
        await nowhere.prepare()
    nowhere.close()
