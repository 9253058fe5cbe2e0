"""One of each kind of object store, on a real server where the store is a cloud's."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from flyte_binary.storage.buckets import Buckets
from flyte_binary.storage.disk import DiskStore
from flyte_binary.storage.s3.client import make_client
from flyte_binary.storage.s3.connection import S3Connection
from flyte_binary.storage.s3.store import S3Store
from flyte_binary.storage.signed import UrlSigner
from flyte_binary.storage.store import ObjectStore
from flyte_binary.storage.threads import StoreThreads
from tests.fakes.memory_store import MemoryStore
from tests.parts import moto, versitygw

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


STORES: dict[str, Callable[[Path], AbstractAsyncContextManager[ObjectStore]]] = {
    "disk": on_disk,
    "memory": in_memory,
    "s3-versitygw": in_versitygw,
    "s3-moto": in_moto,
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
