"""Where secrets are kept: the seam between the service and the encrypted table, or the Secrets of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from flyte_binary.domain.secrets import SecretId, SecretScope


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretContent:
    value: bytes = field(repr=False)
    type: int
    """`SecretType` of the contract."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret:
    """What anybody may know of a secret."""

    id: SecretId
    type: int
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPage:
    secrets: Sequence[StoredSecret]
    token: str = ""
    """Leads to the next page; empty on the last one."""


class Vault(Protocol):
    async def create(self, secret: SecretId, content: SecretContent) -> None:
        """Kept when it returns. Raises `AlreadyExists`."""
        ...

    async def update(self, secret: SecretId, content: SecretContent) -> None:
        """Raises `NotFound`."""
        ...

    async def find(self, secret: SecretId) -> StoredSecret | None: ...

    async def delete(self, secret: SecretId) -> None:
        """Raises `NotFound`."""
        ...

    async def list(self, scope: SecretScope, *, token: str, limit: int) -> SecretPage:
        """Of the scope and all that are in it. Raises `InvalidArgument` for a token that is none."""
        ...

    async def reveal(self, names: Collection[str], scopes: Collection[SecretScope]) -> Mapping[SecretId, bytes]:
        """The values of those that exist. Raises `FailedPrecondition` for one that cannot be decrypted."""
        ...
