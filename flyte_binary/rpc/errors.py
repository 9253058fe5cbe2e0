"""The one map from what a handler raised to what the caller is told.

A `FlyteError` (or a `ConnectError`, where details are needed) keeps its code and sentence. Whatever else is a bug of
ours: the caller gets `internal` with an error id, and the log one line with the same id and the traceback. The code
`unknown` is never made here: over TLS the SDK takes it for a request to log in.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from connectrpc.errors import ConnectError
from google.protobuf import any_pb2, json_format, symbol_database

from flyte_binary.domain.errors import FlyteError

_log = structlog.get_logger(__name__)
_TYPE_URL_PREFIX = "type.googleapis.com/"

HTTP_STATUS = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "data_loss": 500,
    "unauthenticated": 401,
}
"""HTTP status of each Connect code (connectrpc.com/docs/protocol, "Error codes")."""


@dataclass(frozen=True, slots=True)
class WireError:
    code: str
    """Connect's name of the code."""

    message: str
    details: Sequence[any_pb2.Any] = ()

    @property
    def http_status(self) -> int:
        return HTTP_STATUS[self.code]

    def to_json(self) -> dict[str, Any]:  # any: a JSON document
        document: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            document["details"] = [_detail_to_json(detail) for detail in self.details]
        return document

    def to_json_bytes(self) -> bytes:
        return json.dumps(self.to_json()).encode()


SHUTTING_DOWN = WireError("unavailable", "The server is shutting down; try again.")


def raise_if_cancelled(error: BaseException) -> None:
    """Let a cancellation of the current task go on. One that a handler only got from something it waited for, say from
    a writer that stops, is an error like others."""
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error


def wire_error(error: BaseException, method: str) -> WireError:
    """What the caller is told of `error`, raised while `method` (for the log) was served."""
    match error:
        case FlyteError():
            if error.code == "internal":
                _log.error("request failed", method=method, error=error.message, exc_info=error.__cause__)
            return WireError(error.code, error.message)
        case ConnectError():
            return WireError(error.code.value, error.message, tuple(error.details))
        case asyncio.CancelledError():
            return SHUTTING_DOWN
        case TimeoutError():
            return WireError("deadline_exceeded", "The server did not finish in time.")
        case _:
            return _our_bug(error, method)


def _our_bug(error: BaseException, method: str) -> WireError:
    error_id = secrets.token_hex(6)
    _log.error("request failed by a bug", method=method, error_id=error_id, exc_info=error)
    return WireError("internal", f"The server failed on this request (error id {error_id}); its log has the reason.")


def _detail_to_json(detail: any_pb2.Any) -> dict[str, Any]:  # any: a JSON document
    name = detail.type_url.removeprefix(_TYPE_URL_PREFIX)
    document: dict[str, Any] = {"type": name, "value": base64.b64encode(detail.value).decode().rstrip("=")}
    try:
        message = symbol_database.Default().GetSymbol(name)()
    except KeyError:
        return document
    if detail.Unpack(message):
        document["debug"] = json_format.MessageToDict(message)
    return document
