"""What the headers of a request say about the call: the protocol's version, the request's id, how long to wait."""

from __future__ import annotations

import asyncio
import re
import secrets

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.rpc.exchange import Exchange

_UNIT_SECONDS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,200}")


def request_id(exchange: Exchange) -> str:
    """The client's `x-request-id` if it is printable and short, else a new one."""
    given = exchange.headers.get(b"x-request-id", b"")
    return given.decode("ascii") if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def check_connect_version(exchange: Exchange) -> None:
    """Raises InvalidArgument for a `connect-protocol-version` other than 1; none is fine."""
    version = exchange.headers.get(b"connect-protocol-version", b"1")
    if version != b"1":
        raise InvalidArgument(f"connect-protocol-version must be 1, not {version.decode('latin-1')!r}.")


def connect_deadline(exchange: Exchange) -> float | None:
    """`connect-timeout-ms`, at most ten digits, as a time of the event loop's clock. Raises InvalidArgument."""
    header = exchange.headers.get(b"connect-timeout-ms")
    if header is None:
        return None
    text = header.decode("latin-1")
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise InvalidArgument(f"connect-timeout-ms must be a number of at most 10 digits, not {text!r}.")
    return asyncio.get_running_loop().time() + int(text) / 1000


def grpc_deadline(exchange: Exchange) -> float | None:
    """`grpc-timeout`, at most eight digits and a unit, as a time of the event loop's clock. Raises InvalidArgument."""
    header = exchange.headers.get(b"grpc-timeout")
    if header is None:
        return None
    text = header.decode("latin-1")
    digits, unit = text[:-1], text[-1:]
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 8 and unit in _UNIT_SECONDS):
        raise InvalidArgument(f"grpc-timeout must be at most 8 digits and one of H M S m u n, not {text!r}.")
    return asyncio.get_running_loop().time() + int(digits) * _UNIT_SECONDS[unit]
