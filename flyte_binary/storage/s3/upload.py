"""A local file of any size to S3: with one PUT, or in parts."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from flyte_binary.storage.buckets import ObjectName
from flyte_binary.storage.content import MD5_METADATA, base64_of, md5_of_file
from flyte_binary.storage.s3.errors import s3_errors

PART_BYTES = 16 * 1024 * 1024
"""A file up to this size goes with one PUT, a larger one in parts of it."""

_PARTS = 10_000
"""The most that S3 takes; the parts of a huge file are larger."""


def upload_file(
    client: Any,  # Any: boto3 makes its clients at run time
    uri: str,
    name: ObjectName,
    source: Path,
    part_bytes: int,
) -> None:
    """The file must not change meanwhile. An object in parts appears when the last one is there, or not at all."""
    size = source.stat().st_size
    md5 = base64_of(md5_of_file(source))
    metadata = {MD5_METADATA: md5}
    with s3_errors(uri, name.bucket):
        if size > part_bytes:
            _upload_parts(client, name, source, metadata, part_size(size, part_bytes))
            return
        with source.open("rb") as body:
            client.put_object(Bucket=name.bucket, Key=name.key, Body=body, ContentMD5=md5, Metadata=metadata)


def part_size(size_bytes: int, part_bytes: int) -> int:
    """`part_bytes`, or more where that would make too many parts."""
    return max(part_bytes, -(-size_bytes // _PARTS))


def _upload_parts(
    client: Any,  # Any: as above
    name: ObjectName,
    source: Path,
    metadata: dict[str, str],
    part_bytes: int,
) -> None:
    where = {"Bucket": name.bucket, "Key": name.key}
    upload = {**where, "UploadId": client.create_multipart_upload(**where, Metadata=metadata)["UploadId"]}
    try:
        parts: list[dict[str, object]] = []
        with source.open("rb") as content:
            while part := content.read(part_bytes):
                number = len(parts) + 1
                etag = client.upload_part(**upload, PartNumber=number, Body=part)["ETag"]
                parts.append({"PartNumber": number, "ETag": etag})
        client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    except BaseException:
        # Its parts would be kept, and paid for, until somebody ends it.
        with contextlib.suppress(BotoCoreError, ClientError):
            client.abort_multipart_upload(**upload)
        raise
