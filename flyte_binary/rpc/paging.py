"""Pages of a list: how many rows a client may ask for, and the token that leads to the next page.

A token says after which row the next page starts (key-set paging), so that pages neither repeat nor skip rows when
others are inserted meanwhile. Clients treat it as opaque; the last page has an empty one.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, cast

from flyte_binary.domain.errors import InvalidArgument

DEFAULT_LIMIT = 50
LARGEST_LIMIT = 200

TokenKey = str | int | float | None
"""A value of the row that the page ended with."""

_VERSION = "1"


def page_limit(
    limit: int, field: str = "request.limit", *, default: int = DEFAULT_LIMIT, largest: int = LARGEST_LIMIT
) -> int:
    """The number of rows of a page; 0 means the default. Raises InvalidArgument."""
    if limit < 0 or limit > largest:
        raise InvalidArgument(f"{field} must be between 1 and {largest}, or 0 for {default}; got {limit}")
    return limit or default


def make_token(listing: str, keys: Sequence[TokenKey]) -> str:
    """`listing` names the list with its order, `runs:created_at desc`: a token works only for the list that made it."""
    document = json.dumps([_VERSION, listing, *keys], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(document.encode()).decode().rstrip("=")


def keys_from_token(token: str, listing: str, count: int, field: str = "request.token") -> tuple[TokenKey, ...] | None:
    """The `count` keys of the row after which the page starts; None for the first page. Raises InvalidArgument."""
    if not token:
        return None
    document = _document(token, field)
    if document[:2] != [_VERSION, listing]:
        raise InvalidArgument(f"{field} belongs to a list with another order or filter; start again without a token")
    keys = document[2:]
    if len(keys) != count or not all(key is None or isinstance(key, str | int | float) for key in keys):
        raise _invalid(field)
    return tuple(keys)


def _document(token: str, field: str) -> list[Any]:  # any: a JSON document
    try:
        text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        document: Any = json.loads(text)  # any: a JSON document
    except (binascii.Error, ValueError, RecursionError):
        raise _invalid(field) from None
    if not isinstance(document, list):
        raise _invalid(field)
    return cast("list[Any]", document)  # any: a JSON document


def _invalid(field: str) -> InvalidArgument:
    return InvalidArgument(f"{field} is not a token that this server made; send the one of the last page, or none")
