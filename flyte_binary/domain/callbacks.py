"""The address by which whoever gets a condition's webhook can answer it. Pure.

The address carries what it is good for and a signature over it, so that it needs no other proof and
opens nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote

from flyte_binary.domain.ids import ActionId

PREFIX = "/callbacks/conditions"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackAddresses:
    key: bytes
    base_url: str
    """Scheme and host under which the receiver of a webhook reaches this server."""

    def address_of(self, condition: ActionId) -> str:
        parts = (condition.project, condition.domain, condition.run, condition.name)
        path = "/".join(quote(part, safe="") for part in parts)
        return f"{self.base_url.rstrip('/')}{PREFIX}/{path}?signature={self._signature(condition)}"

    def fits(self, condition: ActionId, signature: str) -> bool:
        return hmac.compare_digest(self._signature(condition), signature.encode("ascii", "replace").decode())

    def _signature(self, condition: ActionId) -> str:
        digest = hmac.new(
            self.key,
            b"condition\0" + "\0".join((condition.project, condition.domain, condition.run, condition.name)).encode(),
            hashlib.sha256,
        ).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def with_callback(value: object, address: str) -> object:
    """A payload with `{callback_uri}` replaced in every text, at any depth."""
    if isinstance(value, str):
        return value.replace("{callback_uri}", address)
    if isinstance(value, list):
        return [with_callback(item, address) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: with_callback(item, address) for key, item in cast("dict[str, object]", value).items()}
    return value
