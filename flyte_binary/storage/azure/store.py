"""Azure Blob Storage: `abfs://container/key`, or `abfs://container@account.dfs.core.windows.net/key`.

The client is synchronous and may be shared by threads. It retries by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from azure.core.credentials import TokenCredential
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, BlobProperties, BlobServiceClient, ContentSettings

from flyte_binary.domain.errors import NotFound
from flyte_binary.storage.azure.client import SINGLE_PUT_BYTES, ambient_credential, make_client
from flyte_binary.storage.azure.connection import AzureConnection
from flyte_binary.storage.azure.errors import azure_errors
from flyte_binary.storage.azure.signing import SasSigner
from flyte_binary.storage.buckets import Buckets, ObjectName
from flyte_binary.storage.content import MD5_METADATA, TooLarge, base64_of, md5_in, md5_of, md5_of_file
from flyte_binary.storage.probe import probe
from flyte_binary.storage.store import ListedObject, ObjectInfo, ObjectPage, SignedUrl, Verb
from flyte_binary.storage.threads import StoreThreads

_BEYOND_THE_END = 416


class AzureStore:
    def __init__(
        self,
        buckets: Buckets,
        connection: AzureConnection,
        *,
        signing: AzureConnection | None = None,
        credential: TokenCredential | None = None,
        threads: StoreThreads,
        single_put_bytes: int = SINGLE_PUT_BYTES,
    ) -> None:
        """`signing` is how others reach the store, if not as this server does: signed URLs are made for it.
        `credential` stands in for what Azure's programs would find, where there is no key."""
        self._buckets = buckets
        self._threads = threads
        self._concurrency = connection.upload_concurrency
        token = None if connection.key else credential or ambient_credential()
        self._client: BlobServiceClient = make_client(
            connection, token, connections=threads.size, single_put_bytes=single_put_bytes
        )
        self._signer = SasSigner(signing or connection, self._client)

    @property
    def base_uri(self) -> str:
        return self._buckets.base_uri

    async def prepare(self) -> None:
        """Once, at the start. Raises what keeps the store from being written or read, with what to do."""
        await probe(self)

    def close(self) -> None:
        self._threads.close(wait=False)
        self._client.close()

    def covers(self, uri: str) -> bool:
        return self._buckets.covers(uri)

    async def put(self, uri: str, data: bytes) -> None:
        await self._threads.run(self._put, uri, self._buckets.locate(uri), data)

    async def put_file(self, uri: str, source: Path) -> None:
        await self._threads.run(self._put_file, uri, self._buckets.locate(uri), source)

    async def get(self, uri: str, *, limit_bytes: int, offset: int = 0, length: int | None = None) -> bytes:
        return await self._threads.run(self._get, uri, self._buckets.locate(uri), limit_bytes, offset, length)

    async def stat(self, uri: str, *, with_md5: bool = False) -> ObjectInfo | None:
        return await self._threads.run(self._stat, uri, self._buckets.locate(uri), with_md5)

    async def sign(
        self, uri: str, verb: Verb, *, lifetime: timedelta, origin: str, md5: bytes | None = None
    ) -> SignedUrl:
        del origin  # the URL leads to the store
        return await self._threads.run(self._sign, uri, self._buckets.locate(uri), verb, lifetime, md5)

    async def list(self, uri: str, *, token: str = "", limit: int = 1000) -> ObjectPage:
        return await self._threads.run(self._list, uri.rstrip("/"), self._buckets.folder(uri), token, limit)

    async def delete(self, uris: Sequence[str]) -> None:
        names = [(uri, self._buckets.locate(uri)) for uri in uris]
        await asyncio.gather(*(self._threads.run(self._delete, uri, name) for uri, name in names))

    def _blob(self, name: ObjectName) -> BlobClient:
        return self._client.get_blob_client(name.bucket, name.key)

    def _put(self, uri: str, name: ObjectName, data: bytes) -> None:
        with azure_errors(uri, name.bucket):
            self._blob(name).upload_blob(data, overwrite=True, **_described(md5_of(data)))

    def _put_file(self, uri: str, name: ObjectName, source: Path) -> None:
        """In blocks if it is large; the blob appears with the last of them, or not at all."""
        described = _described(md5_of_file(source))
        with azure_errors(uri, name.bucket), source.open("rb") as content:
            self._blob(name).upload_blob(content, overwrite=True, max_concurrency=self._concurrency, **described)

    def _get(self, uri: str, name: ObjectName, limit_bytes: int, offset: int, length: int | None) -> bytes:
        # One more than allowed tells that it is too much, without a request of its own to ask for the size.
        wanted = limit_bytes + 1 if length is None else min(length, limit_bytes + 1)
        data = self._range(uri, name, offset, wanted)
        if len(data) <= limit_bytes:
            return data
        info = self._stat(uri, name, False)
        available = (info.size_bytes if info else 0) - offset
        raise TooLarge(available if length is None else min(available, length)).of(uri, limit_bytes)

    def _range(self, uri: str, name: ObjectName, offset: int, count: int) -> bytes:
        with azure_errors(uri, name.bucket):
            try:
                return self._blob(name).download_blob(offset, max(count, 1)).readall()[:count]
            except HttpResponseError as error:
                if error.status_code == _BEYOND_THE_END:
                    return b""
                raise

    def _stat(self, uri: str, name: ObjectName, with_md5: bool) -> ObjectInfo | None:
        try:
            with azure_errors(uri, name.bucket):
                found = self._blob(name).get_blob_properties()
        except NotFound:
            return None
        if _is_folder(found):
            return None
        md5 = None
        if with_md5:
            stored = found.content_settings.content_md5
            md5 = bytes(stored) if stored else md5_in(found.metadata) or self._md5_by_reading(uri, name)
        return ObjectInfo(size_bytes=found.size, modified_at=found.last_modified, content_md5=md5)

    def _md5_by_reading(self, uri: str, name: ObjectName) -> bytes:
        hashed = hashlib.md5(usedforsecurity=False)
        with azure_errors(uri, name.bucket):
            for chunk in self._blob(name).download_blob().chunks():
                hashed.update(chunk)
        return hashed.digest()

    def _sign(self, uri: str, name: ObjectName, verb: Verb, lifetime: timedelta, md5: bytes | None) -> SignedUrl:
        headers: dict[str, str] = {}
        if verb is Verb.PUT:
            headers = {"x-ms-blob-type": "BlockBlob"}
            if md5 is not None:
                headers |= {"Content-MD5": base64_of(md5), f"x-ms-meta-{MD5_METADATA}": base64_of(md5)}
        expires_at = datetime.now(UTC).replace(microsecond=0) + lifetime
        with azure_errors(uri, name.bucket):
            return SignedUrl(url=self._signer.url(name, verb, expires_at), headers=headers, expires_at=expires_at)

    def _list(self, uri: str, folder: ObjectName, token: str, limit: int) -> ObjectPage:
        prefix = f"{folder.key}/" if folder.key else ""
        with azure_errors(uri, folder.bucket):
            found = self._client.get_container_client(folder.bucket).list_blobs(
                name_starts_with=prefix, results_per_page=limit, include=["metadata"]
            )
            pages: Any = found.by_page(token or None)  # Any: the iterator of pages has no type for its token
            page: list[BlobProperties] = list(next(pages, ()))
        objects = [
            ListedObject(
                uri=f"{uri}/{blob.name.removeprefix(prefix)}", size_bytes=blob.size, modified_at=blob.last_modified
            )
            for blob in page
            if not _is_folder(blob)
        ]
        return ObjectPage(objects=objects, next_token=pages.continuation_token or "")

    def _delete(self, uri: str, name: ObjectName) -> None:
        with contextlib.suppress(NotFound), azure_errors(uri, name.bucket):
            self._blob(name).delete_blob(delete_snapshots="include")


def _described(md5: bytes) -> dict[str, Any]:  # Any: keywords of several types
    return {
        "metadata": {MD5_METADATA: base64_of(md5)},
        "content_settings": ContentSettings(content_type="application/octet-stream", content_md5=bytearray(md5)),
    }


def _is_folder(blob: BlobProperties) -> bool:
    """Accounts with a hierarchical namespace show their folders as blobs."""
    return (blob.metadata or {}).get("hdi_isfolder") == "true" or blob.name.endswith("/")
