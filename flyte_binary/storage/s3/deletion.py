"""Removing objects from S3, a thousand with one call where the store can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from flyte_binary.storage.s3.errors import code_of

DELETED_AT_ONCE = 1000
"""The most that S3 takes in one call."""

_CANNOT_DELETE_MANY = frozenset({"NotImplemented", "MissingContentMD5", "MissingArgument", "MethodNotAllowed", "405"})
"""Some compatibles know only the call for one object, or want a digest that boto3 makes no more."""


def delete_objects(
    client: Any,  # Any: boto3 makes its clients at run time
    bucket: str,
    keys: Sequence[str],
) -> Mapping[str, Any] | None:  # Any: as S3 says it
    """The first refusal, with `Code`, `Message` and `Key`. Raises botocore's errors for the call as a whole."""
    try:
        answer = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True})
    except ClientError as error:
        if code_of(error) not in _CANNOT_DELETE_MANY:
            raise
        for key in keys:
            client.delete_object(Bucket=bucket, Key=key)
        return None
    return next((refused for refused in answer.get("Errors", []) if refused.get("Code") != "NoSuchKey"), None)
