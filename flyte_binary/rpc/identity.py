"""Who calls, from where, and for how long they wait.

On a laptop everybody is anonymous. Identity headers count only if they come from a listed peer, because anyone else
could write them too.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

from starlette.datastructures import Headers
from starlette.types import Scope


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls; all fields are empty if nobody said."""

    subject: str = ""
    email: str = ""
    given_name: str = ""
    family_name: str = ""

    @property
    def is_anonymous(self) -> bool:
        return not self.subject


ANONYMOUS = Caller()


class TrustedPeers:
    """The proxies whose forwarded headers are believed: addresses or networks."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        """Raises ValueError for what is neither."""
        self._networks = tuple(ipaddress.ip_network(network, strict=False) for network in networks)

    def __contains__(self, peer: object) -> bool:
        if not self._networks or not isinstance(peer, str):
            return False
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


class RequestContext:
    """What a handler may know of its request besides the message."""

    def __init__(
        self,
        *,
        scope: Scope,
        method: str,
        request_id: str,
        caller: Caller = ANONYMOUS,
        deadline: float | None = None,
        trusted_peers: TrustedPeers | None = None,
    ) -> None:
        self.scope = scope
        """The ASGI scope, for what is not offered here."""

        self._deadline = deadline
        self._trusted_peers = trusted_peers or TrustedPeers()
        self.method = method
        """Service and method, `flyteidl2.workflow.RunService/CreateRun`."""

        self.request_id = request_id
        self.caller = caller
        self.response_headers: list[tuple[str, str]] = []
        """Sent before the first message of the answer."""

        self.response_trailers: list[tuple[str, str]] = []

    @cached_property
    def headers(self) -> Headers:
        return Headers(raw=self.scope["headers"])

    @property
    def peer(self) -> str:
        """The address of the other end of the connection, which may be a proxy; empty if there is none."""
        return peer_of(self.scope)

    @property
    def origin(self) -> str:
        """Scheme and host under which the caller reached this server, for links in answers: `http://localhost:30080`.

        A proxy's word for the scheme (`X-Forwarded-Proto`) counts only if the proxy is a trusted peer.
        """
        return origin_of(self.scope, self._trusted_peers)

    def seconds_left(self) -> float | None:
        """Until the caller gives up; None if it waits for ever. The transport ends the handler then by itself."""
        if self._deadline is None:
            return None
        return self._deadline - asyncio.get_running_loop().time()


def peer_of(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def origin_of(scope: Scope, trusted_peers: TrustedPeers) -> str:
    headers = Headers(raw=scope["headers"])
    scheme = scope.get("scheme", "http")
    if peer_of(scope) in trusted_peers:
        forwarded = headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
        scheme = forwarded if forwarded in ("http", "https") else scheme
    return f"{scheme}://{headers.get('host', '')}"


class Authenticator(Protocol):
    """Decides who calls. `method` is the full name, because some methods are open to all."""

    async def caller(self, scope: Scope, method: str) -> Caller:
        """Raises Unauthenticated or PermissionDenied."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAccess:
    """Lets everybody in, and names them if a trusted proxy does.

    The order is that of the reference backend: a JWT of claims, then plain headers, then the bearer token. The proxy
    has verified the token; here it is only read.
    """

    trusted_peers: TrustedPeers = TrustedPeers()  # noqa: RUF009 - immutable
    claims_header: str = ""
    subject_header: str = ""
    email_header: str = ""

    async def caller(self, scope: Scope, method: str) -> Caller:  # noqa: ARG002 - the protocol's
        if peer_of(scope) not in self.trusted_peers:
            return ANONYMOUS
        headers = Headers(raw=scope["headers"])
        return self._claimed(headers) or self._named(headers) or self._bearer(headers) or ANONYMOUS

    def _claimed(self, headers: Headers) -> Caller | None:
        return caller_from_jwt(headers.get(self.claims_header, "")) if self.claims_header else None

    def _named(self, headers: Headers) -> Caller | None:
        subject = headers.get(self.subject_header, "").strip() if self.subject_header else ""
        if not subject:
            return None
        email = headers.get(self.email_header, "").strip() if self.email_header else ""
        return Caller(subject=subject, email=email)

    def _bearer(self, headers: Headers) -> Caller | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return caller_from_jwt(token.strip()) if scheme.lower() == "bearer" else None


def caller_from_jwt(token: str) -> Caller | None:
    """The claims of a token that somebody else verified; None if it is no JWT or names no subject."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        document: Any = json.loads(payload)  # any: a JSON document
    except (binascii.Error, ValueError):
        return None
    claims = cast("dict[str, Any]", document) if isinstance(document, dict) else {}  # any: a JSON document
    if not _claim(claims, "sub"):
        return None
    return Caller(
        subject=_claim(claims, "sub"),
        email=_claim(claims, "email"),
        given_name=_claim(claims, "given_name"),
        family_name=_claim(claims, "family_name"),
    )


def _claim(claims: dict[str, Any], name: str) -> str:  # any: a JSON document
    value = claims.get(name)
    return value if isinstance(value, str) else ""
