"""Outcomes inside a response: the call succeeds, and a `google.rpc.Status` tells how its subject fared."""

from __future__ import annotations

from collections.abc import Awaitable

from google.rpc import code_pb2, status_pb2

from flyte_binary.domain.errors import FlyteError


async def in_band(outcome: Awaitable[None]) -> status_pb2.Status:
    """Code 0, or the code and sentence of the error that was raised. Our own bugs are not caught."""
    try:
        await outcome
    except FlyteError as error:
        return status_from_error(error)
    return status_pb2.Status()


def status_from_error(error: FlyteError) -> status_pb2.Status:
    return status_pb2.Status(code=code_pb2.Code.Value(error.code.upper()), message=error.message)
