"""Amazon S3, and what speaks its protocol: `s3://bucket/key`.

boto3 is synchronous, so its calls run in the store's threads; its clients may be shared by them. It retries what is
worth it (throttling, 5xx, lost connections) before an error comes to us. Checksums other than Content-MD5 are sent
only where S3 demands them: many compatibles know none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from flyte_binary.domain.errors import NotFound
from flyte_binary.storage.buckets import Buckets, ObjectName
from flyte_binary.storage.content import MD5_METADATA, TooLarge, base64_of, md5_in, md5_of
from flyte_binary.storage.probe import probe
from flyte_binary.storage.s3.client import make_client
from flyte_binary.storage.s3.connection import S3Connection
from flyte_binary.storage.s3.deletion import DELETED_AT_ONCE, delete_objects
from flyte_binary.storage.s3.errors import s3_errors, translated
from flyte_binary.storage.s3.reads import md5_of_object, read_object
from flyte_binary.storage.s3.upload import PART_BYTES, upload_file
from flyte_binary.storage.store import ListedObject, ObjectInfo, ObjectPage, SignedUrl, Verb
from flyte_binary.storage.threads import StoreThreads


class S3Store:
    def __init__(
        self,
        buckets: Buckets,
        connection: S3Connection,
        *,
        signing: S3Connection | None = None,
        threads: StoreThreads,
        part_bytes: int = PART_BYTES,
    ) -> None:
        """`signing` is how others reach the store, if not as this server does: signed URLs are made for it."""
        self._buckets = buckets
        self._threads = threads
        self._part_bytes = part_bytes
        # Any: boto3 makes its clients' methods at run time.
        self._client: Any = make_client(connection, connections=threads.size)
        self._signer: Any = self._client if signing is None else make_client(signing, connections=1)

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
        name = self._buckets.locate(uri)
        await self._threads.run(upload_file, self._client, uri, name, source, self._part_bytes)

    async def get(self, uri: str, *, limit_bytes: int, offset: int = 0, length: int | None = None) -> bytes:
        return await self._threads.run(self._get, uri, self._buckets.locate(uri), limit_bytes, offset, length)

    async def stat(self, uri: str, *, with_md5: bool = False) -> ObjectInfo | None:
        return await self._threads.run(self._stat, uri, self._buckets.locate(uri), with_md5)

    async def sign(
        self, uri: str, verb: Verb, *, lifetime: timedelta, origin: str, md5: bytes | None = None
    ) -> SignedUrl:
        """In a thread, since the credentials of a role may have to be fetched anew."""
        del origin  # the URL leads to the store
        return await self._threads.run(self._sign, uri, self._buckets.locate(uri), verb, lifetime, md5)

    async def list(self, uri: str, *, token: str = "", limit: int = 1000) -> ObjectPage:
        return await self._threads.run(self._list, uri.rstrip("/"), self._buckets.folder(uri), token, limit)

    async def delete(self, uris: Sequence[str]) -> None:
        keys: dict[str, list[str]] = {}
        for uri in uris:
            name = self._buckets.locate(uri)
            keys.setdefault(name.bucket, []).append(name.key)
        for bucket, names in keys.items():
            for start in range(0, len(names), DELETED_AT_ONCE):
                await self._threads.run(self._delete, bucket, names[start : start + DELETED_AT_ONCE])

    def _put(self, uri: str, name: ObjectName, data: bytes) -> None:
        md5 = base64_of(md5_of(data))
        with s3_errors(uri, name.bucket):
            self._client.put_object(
                Bucket=name.bucket, Key=name.key, Body=data, ContentMD5=md5, Metadata={MD5_METADATA: md5}
            )

    def _get(self, uri: str, name: ObjectName, limit_bytes: int, offset: int, length: int | None) -> bytes:
        try:
            with s3_errors(uri, name.bucket):
                return read_object(self._client, name, offset=offset, length=length, limit_bytes=limit_bytes)
        except TooLarge as error:
            raise error.of(uri, limit_bytes) from error

    def _stat(self, uri: str, name: ObjectName, with_md5: bool) -> ObjectInfo | None:
        try:
            with s3_errors(uri, name.bucket):
                found = self._client.head_object(Bucket=name.bucket, Key=name.key)
        except NotFound:
            return None
        md5 = None
        if with_md5:
            with s3_errors(uri, name.bucket):
                md5 = md5_in(found.get("Metadata")) or _md5_in_etag(found) or md5_of_object(self._client, name)
        return ObjectInfo(size_bytes=found["ContentLength"], modified_at=found["LastModified"], content_md5=md5)

    def _sign(self, uri: str, name: ObjectName, verb: Verb, lifetime: timedelta, md5: bytes | None) -> SignedUrl:
        parameters: dict[str, object] = {"Bucket": name.bucket, "Key": name.key}
        headers: dict[str, str] = {}
        if verb is Verb.PUT and md5 is not None:
            parameters |= {"ContentMD5": base64_of(md5), "Metadata": {MD5_METADATA: base64_of(md5)}}
            headers = {"Content-MD5": base64_of(md5), f"x-amz-meta-{MD5_METADATA}": base64_of(md5)}
        seconds = max(int(lifetime.total_seconds()), 1)
        expires_at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds)
        with s3_errors(uri, name.bucket):
            operation = "put_object" if verb is Verb.PUT else "get_object"
            url = self._signer.generate_presigned_url(operation, Params=parameters, ExpiresIn=seconds)
        return SignedUrl(url=url, headers=headers, expires_at=expires_at)

    def _list(self, uri: str, folder: ObjectName, token: str, limit: int) -> ObjectPage:
        prefix = f"{folder.key}/" if folder.key else ""
        # The last name rather than S3's own token: that one need not outlive what it was made from.
        after = {"StartAfter": prefix + token} if token else {}
        with s3_errors(uri, folder.bucket):
            page = self._client.list_objects_v2(Bucket=folder.bucket, Prefix=prefix, MaxKeys=limit, **after)
        found: list[Any] = page.get("Contents", [])  # Any: as above
        objects = [
            ListedObject(
                uri=f"{uri}/{each['Key'].removeprefix(prefix)}",
                size_bytes=each["Size"],
                modified_at=each["LastModified"],
            )
            for each in found
            if not each["Key"].endswith("/")  # what some tools put in the place of a folder
        ]
        following = found[-1]["Key"].removeprefix(prefix) if page.get("IsTruncated") and found else ""
        return ObjectPage(objects=objects, next_token=following)

    def _delete(self, bucket: str, keys: Sequence[str]) -> None:
        with s3_errors(f"s3://{bucket}", bucket):
            refused = delete_objects(self._client, bucket, keys)
        if refused:
            raise translated({"Error": refused}, f"s3://{bucket}/{refused.get('Key')}", bucket)


def _md5_in_etag(found: Mapping[str, Any]) -> bytes | None:  # Any: as above
    """An ETag is the MD5 of the content unless the object came in parts or is encrypted with a key of its own."""
    etag = str(found.get("ETag", "")).strip('"')
    plain = found.get("ServerSideEncryption", "AES256") == "AES256" and "SSECustomerAlgorithm" not in found
    return bytes.fromhex(etag) if plain and re.fullmatch(r"[0-9a-f]{32}", etag) else None
