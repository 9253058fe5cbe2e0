"""What Azure Blob Storage refuses, in our errors and with what to do about it.

Codes: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

from flyte_binary.domain.errors import (
    FailedPrecondition,
    FlyteError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
)

_DENIED = (
    "this server's credentials need the role Storage Blob Data Contributor on the container, and Storage Blob "
    "Delegator on the account for signed URLs; or check storage.stow.config.key"
)


@contextlib.contextmanager
def azure_errors(uri: str, container: str) -> Generator[None]:
    try:
        yield
    except ClientAuthenticationError as error:
        raise FailedPrecondition(f"the store refused {uri}: {_said(error)}; {_DENIED}") from error
    except HttpResponseError as error:
        raise _translated(error, uri, container) from error
    except AzureError as error:
        raise Unavailable(f"the store did not answer about {uri}: {_said(error)}") from error


def code_of(error: HttpResponseError) -> str:
    """The storage service's own word, empty where it said none. A HEAD has no body, but a header."""
    code = getattr(error, "error_code", "") or ""
    return str(getattr(code, "value", code))


def _translated(error: HttpResponseError, uri: str, container: str) -> FlyteError:
    code, status, said = code_of(error), error.status_code or 0, _said(error)
    if code in ("ContainerNotFound", "ContainerBeingDeleted"):
        return FailedPrecondition(
            f"the container {container} does not exist: create it, or correct runs.storagePrefix or storage.container"
        )
    if status == 404:
        return NotFound(f"there is no object {uri}")
    if status in (401, 403):
        return FailedPrecondition(f"the store refused {uri}: {said}; {_DENIED}")
    if code in ("InvalidResourceName", "OutOfRangeInput", "InvalidUri"):
        return InvalidArgument(f"the store cannot have a name such as {uri}: {said}")
    if status == 413 or code == "RequestBodyTooLarge":
        return ResourceExhausted(f"{uri} is larger than the store takes: {said}")
    if status in (408, 429) or status >= 500:
        return Unavailable(f"the store is busy or out of order ({said}); {uri} was tried several times")
    return FailedPrecondition(f"the store refused {uri}: {said} ({code or status})")


def _said(error: AzureError) -> str:
    return str(error.message).partition("\n")[0]
