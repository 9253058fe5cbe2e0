"""Credentials and a client of azure-storage-blob, as this store wants them."""

from __future__ import annotations

import requests
from azure.core.credentials import TokenCredential
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import DefaultAzureCredential
from azure.storage.blob import BlobServiceClient, ExponentialRetry
from requests.adapters import HTTPAdapter

from flyte_binary.storage.azure.connection import AzureConnection

CONNECT_SECONDS, READ_SECONDS = 5, 60
SINGLE_PUT_BYTES = 64 * 1024 * 1024
"""A file up to this size goes with one PUT, a larger one in blocks."""
BLOCK_BYTES = 16 * 1024 * 1024


def make_client(
    connection: AzureConnection, credential: TokenCredential | None, *, connections: int, single_put_bytes: int
) -> BlobServiceClient:
    """May be used by `connections` threads at once. Talks to nobody yet."""
    session = requests.Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=connections))
    return BlobServiceClient(
        connection.url,
        # The name too, since it cannot be told from the address of an emulator or a proxy.
        credential=credential or {"account_name": connection.account, "account_key": connection.key},
        retry_policy=ExponentialRetry(initial_backoff=1, increment_base=2, retry_total=3, random_jitter_range=1),
        transport=RequestsTransport(session=session),
        connection_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        max_single_put_size=single_put_bytes,
        max_block_size=min(BLOCK_BYTES, single_put_bytes),
    )


def ambient_credential() -> TokenCredential:
    """The environment's, the machine's or the user's own, tried one after the other when a token is needed."""
    return DefaultAzureCredential(exclude_interactive_browser_credential=True)
