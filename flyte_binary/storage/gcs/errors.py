"""What Google Cloud Storage refuses, in our errors and with what to do about it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
from requests.exceptions import RequestException

from flyte_binary.domain.errors import (
    FailedPrecondition,
    FlyteError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
)


@contextlib.contextmanager
def gcs_errors(uri: str, bucket: str, *, in_bucket: bool = False) -> Generator[None]:
    """`in_bucket` for calls that need no object, so that only the bucket can be what is missing."""
    try:
        yield
    except api.GoogleAPICallError as error:
        raise _translated(error, uri, bucket, in_bucket) from error
    except auth.TransportError as error:
        raise Unavailable(f"Google's authentication did not answer about {uri}: {error}") from error
    except auth.GoogleAuthError as error:
        raise FailedPrecondition(
            f"no credentials for {uri}: {error}; set storage.stow.config.json, or give this process Application "
            "Default Credentials"
        ) from error
    except (api.RetryError, RequestException, DataCorruption, InvalidResponse, ConnectionError, TimeoutError) as error:
        raise Unavailable(f"the store did not answer about {uri}: {error}") from error


def _translated(error: api.GoogleAPICallError, uri: str, bucket: str, in_bucket: bool) -> FlyteError:
    said = str(error)
    match error:
        case api.NotFound() if in_bucket or "bucket does not exist" in said:
            return FailedPrecondition(
                f"the bucket {bucket} does not exist: create it, or correct runs.storagePrefix or storage.container"
            )
        case api.NotFound():
            return NotFound(f"there is no object {uri}")
        case api.Unauthorized():
            return FailedPrecondition(f"the store does not accept the credentials (storage.stow.config.json): {said}")
        case api.Forbidden() if "quota" in said.lower():
            return ResourceExhausted(f"the store's quota is used up: {said}")
        case api.Forbidden():
            return FailedPrecondition(
                f"the store refused {uri}: {said}; this server's credentials need the role Storage Object User on "
                "the bucket"
            )
        case api.RequestRangeNotSatisfiable():
            return InvalidArgument(f"{uri} ends before what was asked for")
        case api.BadRequest():
            return InvalidArgument(f"the store cannot do this with {uri}: {said}")
        case api.TooManyRequests() | api.ServerError():
            return Unavailable(f"the store is busy or out of order ({said}); {uri} was tried several times")
        case _:
            return FailedPrecondition(f"the store refused {uri}: {said}")
