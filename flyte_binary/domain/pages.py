"""Pages of a list: how many items, and where the last page ended.

A token holds the sort values of the last item that was sent, so a page begins behind that item, whatever was inserted
before it meanwhile. A plain number is still understood as a row offset, as the reference backend makes them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from flyteidl2.common import list_pb2

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.domain.filters import INT64_LIMIT, Order

DEFAULT_LIMIT = 50
MAX_LIMIT = 200

SortValue = str | int


@dataclass(frozen=True, slots=True)
class Page:
    orders: tuple[Order, ...]
    """A total order: no two items are equal in it."""

    limit: int
    after: tuple[SortValue, ...] | None = None
    """Sort values of the item behind which the page begins."""

    offset: int = 0


def page_from_proto(request: list_pb2.ListRequest, orders: Sequence[Order]) -> Page:
    """Raises `InvalidArgument` for a limit that is too large and for a token that is none or of another order."""
    if request.limit > MAX_LIMIT:
        raise InvalidArgument(f"invalid limit: {request.limit} (exceeds maximum of {MAX_LIMIT})")
    return page_from_token(request.token, orders, limit=request.limit or DEFAULT_LIMIT)


def page_from_token(token: str, orders: Sequence[Order], *, limit: int) -> Page:
    if not token:
        return Page(tuple(orders), limit)
    if token.isascii() and token.isdigit() and int(token) <= INT64_LIMIT:
        return Page(tuple(orders), limit, offset=int(token))
    return Page(tuple(orders), limit, after=_values(token, orders))


def token_after(values: Sequence[SortValue], orders: Sequence[Order]) -> str:
    document = json.dumps([_fingerprint(orders), *values], separators=(",", ":"))
    return base64.urlsafe_b64encode(document.encode()).decode().rstrip("=")


def _values(token: str, orders: Sequence[Order]) -> tuple[SortValue, ...]:
    try:
        document: object = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError):
        raise InvalidArgument(f"invalid token: {token!r}") from None
    if not isinstance(document, list):
        raise InvalidArgument(f"invalid token: {token!r}")
    fingerprint, *values = cast("list[object]", document) or [None]
    if fingerprint != _fingerprint(orders):
        raise InvalidArgument("invalid token: it belongs to a list with another order; start without a token")
    known = [value for value in values if isinstance(value, str | int) and not isinstance(value, bool)]
    if len(known) != len(orders) or len(values) != len(orders):
        raise InvalidArgument(f"invalid token: {token!r}")
    return tuple(known)


def _fingerprint(orders: Sequence[Order]) -> str:
    text = ",".join(f"{order.field.column} {order.descending}" for order in orders)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
