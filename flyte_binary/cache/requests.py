"""What CacheService requests must carry, and the names that they are stored under."""

from __future__ import annotations

from typing import Protocol

from flyteidl2.cacheservice import cacheservice_pb2 as v1
from flyteidl2.cacheservice.v2 import cacheservice_pb2 as v2

from flyte_binary.domain.cache_entries import KEY_LIMIT, shared_key, stored_key
from flyte_binary.domain.errors import InvalidArgument

_OUTSIDE = "outside:"
"""Marks the owners that come in from outside, so that none of them can pass for an action."""
_LAST_SECOND = 253_402_300_799
"""Of the year 9999, where protobuf's timestamps end."""


class Base(Protocol):
    @property
    def key(self) -> str: ...


def require_key(base: Base, identifier: v2.Identifier, *, across_projects: bool) -> str:
    """The stored key. The identifier may be absent, as for the reference backend; its organisation never counts, nor
    does anything else of it with `across_projects`.

    Raises `InvalidArgument`.
    """
    key = base.key
    if not key:
        raise InvalidArgument("base_request.key is required: the cache key of the outputs")
    project, domain = identifier.project, identifier.domain
    if "/" in project:
        raise InvalidArgument("identifier.project: the name of a project has no slash")
    if "/" in domain:
        raise InvalidArgument("identifier.domain: the name of a domain has no slash")
    stored = shared_key(key) if across_projects else stored_key(project, domain, key)
    if "\0" in stored:
        raise InvalidArgument("base_request.key, identifier: NUL characters cannot be stored")
    if len(stored) > KEY_LIMIT:
        longest = KEY_LIMIT - (len(stored) - len(key))
        raise InvalidArgument(
            f"base_request.key: {len(key)} characters, of which at most {longest} can be stored beside this "
            "project and domain; use a digest of the key"
        )
    return stored


def require_owner(owner: str) -> str:
    """The owner as stored. Raises `InvalidArgument`."""
    if not owner:
        raise InvalidArgument("base_request.owner_id is required: who computes the outputs")
    if "\0" in owner:
        raise InvalidArgument("base_request.owner_id: NUL characters cannot be stored")
    return _OUTSIDE + owner


def require_output(output: v1.CachedOutput) -> None:
    """Raises `InvalidArgument`."""
    if output.WhichOneof("output") == "output_literals":
        raise InvalidArgument("base_request.output.output_literals is not supported: store them and give output_uri")
    if not output.output_uri:
        raise InvalidArgument("base_request.output.output_uri is required: where the outputs are stored")
    if "\0" in output.output_uri:
        raise InvalidArgument("base_request.output.output_uri: NUL characters cannot be stored")
    if not 0 <= output.metadata.created_at.seconds <= _LAST_SECOND:
        raise InvalidArgument("base_request.output.metadata.created_at must lie between the years 1970 and 9999")


def owner_as_sent(stored: str) -> str:
    """What callers see: their own names as they gave them, actions as `action:<project>/<domain>/<run>/<action>`."""
    return stored.removeprefix(_OUTSIDE)
