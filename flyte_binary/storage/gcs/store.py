"""Google Cloud Storage: `gs://bucket/key`.

The client is synchronous and may be shared by threads. It retries by itself, for as long as `client.RETRY` says.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from google.api_core.exceptions import NotFound as ApiNotFound
from google.api_core.exceptions import RequestRangeNotSatisfiable

from flyte_binary.domain.errors import NotFound
from flyte_binary.storage.buckets import Buckets, ObjectName
from flyte_binary.storage.content import MD5_METADATA, TooLarge, base64_of, md5_from, md5_in
from flyte_binary.storage.gcs.client import PUBLIC_ENDPOINT, RETRY, TIMEOUT, make_client, make_credentials
from flyte_binary.storage.gcs.connection import GcsConnection
from flyte_binary.storage.gcs.errors import gcs_errors
from flyte_binary.storage.gcs.signing import IamSigner, signer_of
from flyte_binary.storage.probe import probe
from flyte_binary.storage.store import ListedObject, ObjectInfo, ObjectPage, SignedUrl, Verb
from flyte_binary.storage.threads import StoreThreads

_CONTENT_TYPE = "application/octet-stream"
_CHUNK_BYTES = 8 * 1024 * 1024
_CALL: dict[str, Any] = {"timeout": TIMEOUT, "retry": RETRY}  # Any: the options of every call


class GcsStore:
    def __init__(
        self,
        buckets: Buckets,
        connection: GcsConnection,
        *,
        signing: GcsConnection | None = None,
        threads: StoreThreads,
    ) -> None:
        """`signing` is how others reach the store, if not as this server does: signed URLs are made for it."""
        self._buckets = buckets
        self._threads = threads
        with gcs_errors(buckets.base_uri, buckets.base.bucket):
            # Any: google.auth's credentials and the client's calls have no types.
            self._credentials: Any = make_credentials(connection)
            self._client: Any = make_client(connection, self._credentials, connections=threads.size)
        self._signing = signing or connection

    @property
    def base_uri(self) -> str:
        return self._buckets.base_uri

    async def prepare(self) -> None:
        """Once, at the start. Raises what keeps the store from being written or read, with what to do."""
        await probe(self)

    def close(self) -> None:
        self._threads.close(wait=False)
        self._client.close()
        if isinstance(signer := self.__dict__.get("_signer"), IamSigner):
            signer.close()

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

    def _blob(self, name: ObjectName) -> Any:  # Any: as above
        return self._client.bucket(name.bucket).blob(name.key)

    def _put(self, uri: str, name: ObjectName, data: bytes) -> None:
        with gcs_errors(uri, name.bucket, in_bucket=True):
            self._blob(name).upload_from_string(data, content_type=_CONTENT_TYPE, **_CALL)

    def _put_file(self, uri: str, name: ObjectName, source: Path) -> None:
        """Google takes 5 TiB at once, in a session that goes on where it was cut."""
        with gcs_errors(uri, name.bucket, in_bucket=True):
            self._blob(name).upload_from_filename(str(source), content_type=_CONTENT_TYPE, **_CALL)

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
        blob = self._blob(name)
        with gcs_errors(uri, name.bucket):
            try:
                last = offset + max(count, 1) - 1
                data = blob.download_as_bytes(start=offset, end=last, raw_download=True, checksum=None, **_CALL)
            except RequestRangeNotSatisfiable:
                return b""
        return data[:count]

    def _stat(self, uri: str, name: ObjectName, with_md5: bool) -> ObjectInfo | None:
        blob = self._blob(name)
        try:
            with gcs_errors(uri, name.bucket):
                blob.reload(**_CALL)
        except NotFound:
            return None
        md5 = None
        if with_md5:  # an object that was put together of others has none
            md5 = md5_from(blob.md5_hash) or md5_in(blob.metadata) or self._md5_by_reading(uri, name)
        return ObjectInfo(size_bytes=blob.size, modified_at=blob.updated, content_md5=md5)

    def _md5_by_reading(self, uri: str, name: ObjectName) -> bytes:
        hashed = hashlib.md5(usedforsecurity=False)
        offset = 0
        while chunk := self._range(uri, name, offset, _CHUNK_BYTES):
            hashed.update(chunk)
            offset += len(chunk)
        return hashed.digest()

    @functools.cached_property
    def _signer(self) -> Any:  # Any: as above
        own = self._signing.credentials_json
        return signer_of(make_credentials(self._signing) if own else self._credentials, self._signing)

    def _sign(self, uri: str, name: ObjectName, verb: Verb, lifetime: timedelta, md5: bytes | None) -> SignedUrl:
        headers: dict[str, str] = {}
        if verb is Verb.PUT and md5 is not None:
            headers = {"Content-MD5": base64_of(md5), f"x-goog-meta-{MD5_METADATA}": base64_of(md5)}
        expires_at = datetime.now(UTC).replace(microsecond=0) + lifetime
        with gcs_errors(uri, name.bucket):
            url = self._blob(name).generate_signed_url(
                version="v4",
                expiration=max(lifetime, timedelta(seconds=1)),
                method=verb.value,
                headers=headers or None,
                credentials=self._signer,
                api_access_endpoint=self._signing.endpoint or PUBLIC_ENDPOINT,
            )
        return SignedUrl(url=url, headers=headers, expires_at=expires_at)

    def _list(self, uri: str, folder: ObjectName, token: str, limit: int) -> ObjectPage:
        prefix = f"{folder.key}/" if folder.key else ""
        with gcs_errors(uri, folder.bucket, in_bucket=True):
            found = self._client.list_blobs(
                folder.bucket, prefix=prefix, page_size=limit, page_token=token or None, **_CALL
            )
            page = next(found.pages, ())
            objects = [
                ListedObject(
                    uri=f"{uri}/{blob.name.removeprefix(prefix)}", size_bytes=blob.size, modified_at=blob.updated
                )
                for blob in page
                if not blob.name.endswith("/")  # what some tools put in the place of a folder
            ]
        return ObjectPage(objects=objects, next_token=found.next_page_token or "")

    def _delete(self, uri: str, name: ObjectName) -> None:
        with gcs_errors(uri, name.bucket):
            try:
                self._blob(name).delete(**_CALL)
            except ApiNotFound:
                return
