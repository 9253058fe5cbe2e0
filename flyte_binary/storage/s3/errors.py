"""What S3 and its compatibles refuse, in our errors and with what to do about it.

Codes: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList. A HEAD has no body, so its
code is the HTTP status.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from flyte_binary.domain.errors import (
    FailedPrecondition,
    FlyteError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
)

_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
_CREDENTIALS = frozenset(
    {
        "InvalidAccessKeyId",
        "XAdminUserNotFound",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "InvalidToken",
        "TokenRefreshRequired",
        "InvalidSecurity",
        "RequestTimeTooSkewed",
    }
)
_REGION = frozenset(
    {
        "301",
        "PermanentRedirect",
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "InvalidLocationConstraint",
    }
)
_DENIED = frozenset({"403", "AccessDenied", "AllAccessDisabled", "AccountProblem"})
_FULL = frozenset({"507", "QuotaExceeded", "XMinioStorageFull", "InsufficientCapacity", "StorageFull"})
_TOO_LARGE = frozenset({"413", "EntityTooLarge", "MaxMessageLengthExceeded"})
_BAD_NAME = frozenset({"KeyTooLongError", "KeyTooLong", "XMinioInvalidObjectName", "InvalidURI"})
_IN_THE_WAY = frozenset({"ObjectParentIsFile", "ExistingObjectIsDirectory", "XMinioParentIsObject", "FileParentIsFile"})
_BUSY = frozenset({"SlowDown", "Throttling", "RequestTimeout", "RequestTimeTooLong", "TooManyRequests", "429", "408"})

_WRONG_REGION = "check storage.stow.config.region and endpoint: the bucket is in another region"


@contextlib.contextmanager
def s3_errors(uri: str, bucket: str) -> Generator[None]:
    try:
        yield
    except ClientError as error:
        raise translated(_response(error), uri, bucket) from error
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise FailedPrecondition(
            f"no credentials for {uri} ({error}): set storage.stow.config.access_key_id and secret_key, or give this "
            "process those that AWS programs look for"
        ) from error
    except RecursionError as error:  # botocore follows a redirect that leads back to itself
        raise FailedPrecondition(f"the store sends {uri} elsewhere and back again; {_WRONG_REGION}") from error
    except BotoCoreError as error:
        raise Unavailable(f"the store did not answer about {uri}: {error}") from error


def translated(response: Mapping[str, Any], uri: str, bucket: str) -> FlyteError:  # Any: whatever S3 answered
    """`response` as botocore gives it to a `ClientError`, after its own retries."""
    code = str(response.get("Error", {}).get("Code", ""))
    said = str(response.get("Error", {}).get("Message", "")) or code
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code == "NoSuchBucket":
        return FailedPrecondition(
            f"the bucket {bucket} does not exist, or not at this endpoint: create it, or correct runs.storagePrefix "
            "or storage.container"
        )
    if code in _MISSING:
        return NotFound(f"there is no object {uri}")
    if (problem := _setting(code, status)) is not None:
        return FailedPrecondition(f"the store refused {uri}: {said}; {problem}")
    if code in _FULL:
        return ResourceExhausted(f"no room to write {uri}: {said}")
    if code in _TOO_LARGE:
        return ResourceExhausted(f"{uri} is larger than the store takes: {said}")
    if code in _BAD_NAME:
        return InvalidArgument(f"the store cannot have a name such as {uri}: {said}")
    if code in _IN_THE_WAY:
        return FailedPrecondition(f"cannot write {uri}: an object or folder of that name is in the way")
    if code in _BUSY or status >= 500:
        return Unavailable(f"the store is busy or out of order ({said}); {uri} was tried several times")
    return FailedPrecondition(f"the store refused {uri}: {said} ({code or status})")


def code_of(error: ClientError) -> str:
    return str(_response(error).get("Error", {}).get("Code", ""))


def _response(error: ClientError) -> Mapping[str, Any]:  # Any: as above
    return cast("Mapping[str, Any]", cast("Any", error).response)


def _setting(code: str, status: int) -> str | None:
    if code in _REGION:
        return _WRONG_REGION
    if code in _CREDENTIALS or (status in (401, 403) and code not in _DENIED):
        return "check the credentials (storage.stow.config.access_key_id, secret_key, token) and this machine's clock"
    if code in _DENIED:
        return (
            "this server's credentials need s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket there "
            "(without s3:ListBucket S3 says the same of objects that do not exist)"
        )
    return None
