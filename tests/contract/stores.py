"""One of each kind of object store, on a real server where the store is a cloud's."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from azure.core.credentials import TokenCredential

from flyte_binary.storage.azure.client import make_client as make_azure_client
from flyte_binary.storage.azure.connection import AzureConnection
from flyte_binary.storage.azure.store import AzureStore
from flyte_binary.storage.buckets import Buckets
from flyte_binary.storage.disk import DiskStore
from flyte_binary.storage.gcs.client import make_client as make_gcs_client
from flyte_binary.storage.gcs.client import make_credentials
from flyte_binary.storage.gcs.connection import GcsConnection
from flyte_binary.storage.gcs.store import GcsStore
from flyte_binary.storage.s3.client import make_client
from flyte_binary.storage.s3.connection import S3Connection
from flyte_binary.storage.s3.store import S3Store
from flyte_binary.storage.signed import UrlSigner
from flyte_binary.storage.store import ObjectStore
from flyte_binary.storage.threads import StoreThreads
from tests.fakes.memory_store import MemoryStore
from tests.parts import azurite, gcs, moto, versitygw
from tests.parts.google_iam import google_iam

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
"""For the stores whose clock a test can set; those of clouds go by the real one."""

PART_BYTES = 5 * 1024 * 1024
"""The smallest that S3 takes, so that a test need not write much to see an upload in parts."""


@asynccontextmanager
async def on_disk(folder: Path) -> AsyncGenerator[ObjectStore]:
    disk = DiskStore(folder / "store", UrlSigner(b"k" * 32), sync=False, now=lambda: NOW)
    await disk.prepare()
    yield disk
    disk.close()


@asynccontextmanager
async def in_memory(_folder: Path) -> AsyncGenerator[ObjectStore]:
    yield MemoryStore(now=lambda: NOW)


@asynccontextmanager
async def in_versitygw(_folder: Path) -> AsyncGenerator[ObjectStore]:
    async with s3_store(versitygw_connection()) as store:
        yield store


@asynccontextmanager
async def in_moto(_folder: Path) -> AsyncGenerator[ObjectStore]:
    connection = S3Connection(
        endpoint=moto.shared_server().url, region="us-east-1", access_key_id="any", secret_key="any"
    )
    async with s3_store(connection) as store:
        yield store


@asynccontextmanager
async def in_fake_gcs(_folder: Path) -> AsyncGenerator[ObjectStore]:
    with google_iam() as iam:
        async with gcs_store(
            GcsConnection(endpoint=gcs.shared_server().url, credentials_json=iam.service_account_json())
        ) as store:
            yield store


@asynccontextmanager
async def in_azurite(_folder: Path) -> AsyncGenerator[ObjectStore]:
    async with azure_store(azurite_connection()) as store:
        yield store


STORES: dict[str, Callable[[Path], AbstractAsyncContextManager[ObjectStore]]] = {
    "disk": on_disk,
    "memory": in_memory,
    "s3-versitygw": in_versitygw,
    "s3-moto": in_moto,
    "gcs": in_fake_gcs,
    "azure": in_azurite,
}


def versitygw_connection() -> S3Connection:
    return S3Connection(
        endpoint=versitygw.shared_server().url,
        region=versitygw.REGION,
        access_key_id=versitygw.ACCESS_KEY,
        secret_key=versitygw.SECRET_KEY,
    )


@asynccontextmanager
async def s3_store(connection: S3Connection, *, signing: S3Connection | None = None) -> AsyncGenerator[S3Store]:
    """On a bucket of its own."""
    base_uri = f"s3://{new_bucket(connection)}/some/folder"
    store = S3Store(
        Buckets(schemes=("s3",), base_uri=base_uri),
        connection,
        signing=signing,
        threads=StoreThreads(8),
        part_bytes=PART_BYTES,
    )
    await store.prepare()
    yield store
    store.close()


def new_bucket(connection: S3Connection) -> str:
    bucket = f"bucket-{secrets.token_hex(8)}"
    client = _client(connection)
    where = {} if connection.region == "us-east-1" else {"LocationConstraint": connection.region}
    client.create_bucket(Bucket=bucket, **({"CreateBucketConfiguration": where} if where else {}))
    return bucket


@cache
def _client(connection: S3Connection) -> Any:  # Any: boto3's clients have no types
    """A tenth of a second to make."""
    return make_client(connection, connections=1)


@asynccontextmanager
async def gcs_store(connection: GcsConnection, *, signing: GcsConnection | None = None) -> AsyncGenerator[GcsStore]:
    """On a bucket of its own."""
    bucket = f"bucket-{secrets.token_hex(8)}"
    client: Any = make_gcs_client(connection, make_credentials(connection), connections=1)
    client.create_bucket(bucket)
    client.close()
    base_uri = f"gs://{bucket}/some/folder"
    store = GcsStore(Buckets(schemes=("gs",), base_uri=base_uri), connection, signing=signing, threads=StoreThreads(8))
    await store.prepare()
    yield store
    store.close()


def azurite_connection() -> AzureConnection:
    return AzureConnection(
        account=azurite.ACCOUNT, key=azurite.KEY, endpoint=f"{azurite.shared_server().url}/{azurite.ACCOUNT}"
    )


@asynccontextmanager
async def azure_store(
    connection: AzureConnection,
    *,
    signing: AzureConnection | None = None,
    credential: TokenCredential | None = None,
) -> AsyncGenerator[AzureStore]:
    """On a container of its own."""
    container = f"container-{secrets.token_hex(8)}"
    with make_azure_client(connection, credential, connections=1, single_put_bytes=PART_BYTES) as client:
        client.create_container(container)
    store = AzureStore(
        Buckets(schemes=("abfs", "abfss"), base_uri=f"abfs://{container}/some/folder"),
        connection,
        signing=signing,
        credential=credential,
        threads=StoreThreads(8),
        single_put_bytes=PART_BYTES,
    )
    await store.prepare()
    yield store
    store.close()
