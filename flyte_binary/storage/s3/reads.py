"""Reading an object of S3, or a part of it."""

from __future__ import annotations

import hashlib
from contextlib import closing
from typing import Any

from botocore.exceptions import ClientError, HTTPClientError, IncompleteReadError, ResponseStreamingError

from flyte_binary.storage.buckets import ObjectName
from flyte_binary.storage.content import TooLarge
from flyte_binary.storage.s3.client import ATTEMPTS
from flyte_binary.storage.s3.errors import code_of

_LOST = (IncompleteReadError, ResponseStreamingError, HTTPClientError)
"""The connection broke while the content came; botocore retries only until it begins to come."""
_CHUNK_BYTES = 1024 * 1024
_BEYOND_THE_END = frozenset({"InvalidRange", "416", "RequestedRangeNotSatisfiable"})


def read_object(
    client: Any,  # Any: boto3 makes its clients at run time
    name: ObjectName,
    *,
    offset: int,
    length: int | None,
    limit_bytes: int,
) -> bytes:
    """Raises botocore's errors, and `TooLarge` instead of reading more than the limit."""
    request = {"Bucket": name.bucket, "Key": name.key}
    if offset or length is not None:
        last = "" if length is None else str(offset + max(length, 1) - 1)
        request["Range"] = f"bytes={offset}-{last}"
    for attempt in range(1, ATTEMPTS + 1):
        try:
            answer = _opened(client, request)
            with closing(answer["Body"]) as stream:
                size = 0 if length == 0 else answer["ContentLength"]
                if size > limit_bytes:
                    raise TooLarge(size)
                return stream.read() if size else b""
        except _NothingThere:
            return b""
        except _LOST:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returned or raised")


def md5_of_object(client: Any, name: ObjectName) -> bytes:  # Any: as above
    hashed = hashlib.md5(usedforsecurity=False)
    with closing(client.get_object(Bucket=name.bucket, Key=name.key)["Body"]) as stream:
        for chunk in stream.iter_chunks(_CHUNK_BYTES):
            hashed.update(chunk)
    return hashed.digest()


class _NothingThere(Exception):
    """The object exists and ends before what was asked for."""


def _opened(client: Any, request: dict[str, str]) -> Any:  # Any: as above
    try:
        return client.get_object(**request)
    except ClientError as error:
        if code_of(error) in _BEYOND_THE_END:
            raise _NothingThere from error
        raise
