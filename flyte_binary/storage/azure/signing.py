"""Shared access signatures: by the account's key, or by a user delegation key that Azure lends for a while.

https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from azure.storage.blob import BlobSasPermissions, BlobServiceClient, UserDelegationKey, generate_blob_sas

from flyte_binary.storage.azure.connection import AzureConnection
from flyte_binary.storage.buckets import ObjectName
from flyte_binary.storage.store import Verb

_SKEW = timedelta(minutes=15)
"""Signatures are good from so long ago, for clients and stores whose clocks are slow."""
_KEY_LIFE = timedelta(days=2)
"""Azure lends one for a week at most."""


class SasSigner:
    def __init__(
        self,
        connection: AzureConnection,
        client: BlobServiceClient,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`connection` is how those who get the URLs reach the store; `client` asks for delegation keys."""
        self._connection = connection
        self._client = client
        self._now = now
        self._lock = threading.Lock()
        self._delegation: tuple[UserDelegationKey, datetime] | None = None
        """With when it ends."""

    def url(self, name: ObjectName, verb: Verb, expires_at: datetime) -> str:
        connection = self._connection
        permission = BlobSasPermissions(read=True) if verb is Verb.GET else BlobSasPermissions(create=True, write=True)
        query = generate_blob_sas(
            account_name=connection.account,
            container_name=name.bucket,
            blob_name=name.key,
            account_key=connection.key or None,
            user_delegation_key=None if connection.key else self._delegation_key(expires_at),
            permission=permission,
            start=self._now() - _SKEW,
            expiry=expires_at,
            protocol="https" if connection.url.startswith("https:") else None,
        )
        return f"{connection.url}/{name.bucket}/{quote(name.key, safe='/~')}?{query}"

    def _delegation_key(self, until: datetime) -> UserDelegationKey:
        """One that outlives the URL; asked for rarely, since each is a request."""
        with self._lock:
            if self._delegation is not None and self._delegation[1] >= until:
                return self._delegation[0]
            now = self._now()
            ends = max(now + _KEY_LIFE, until)
            key = self._client.get_user_delegation_key(key_start_time=now - _SKEW, key_expiry_time=ends)
            self._delegation = (key, ends)
            return key
