"""The errors a caller can be told about, each with its Connect code.

    FlyteError
    ├── InvalidArgument      the request is wrong; names the field and what to do
    ├── NotFound             ├── AlreadyExists      ├── FailedPrecondition
    ├── Aborted              the run or an ancestor is ending
    ├── ResourceExhausted    too large, too many, slow down
    ├── PermissionDenied     ├── Unauthenticated
    ├── Unimplemented        ├── Unavailable        ├── DeadlineExceeded
    └── Internal             our own bug or a broken disk; clients retry it, so never for a bad request

They are raised where the fact is known and mapped to the wire once, in `rpc/errors.py`. There is no
class for the code `unknown`: over TLS the SDK takes it for a request to log in.
"""

from __future__ import annotations

from typing import ClassVar


class FlyteError(Exception):
    """Base of all errors with a meaning for the caller; `code` is the Connect code's wire name."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidArgument(FlyteError):
    code = "invalid_argument"


class NotFound(FlyteError):
    code = "not_found"


class AlreadyExists(FlyteError):
    code = "already_exists"


class FailedPrecondition(FlyteError):
    code = "failed_precondition"


class Aborted(FlyteError):
    code = "aborted"


class ResourceExhausted(FlyteError):
    code = "resource_exhausted"


class PermissionDenied(FlyteError):
    code = "permission_denied"


class Unauthenticated(FlyteError):
    code = "unauthenticated"


class Unimplemented(FlyteError):
    code = "unimplemented"


class Unavailable(FlyteError):
    code = "unavailable"


class DeadlineExceeded(FlyteError):
    code = "deadline_exceeded"


class Internal(FlyteError):
    code = "internal"
