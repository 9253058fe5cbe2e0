"""The values that a task gets: of each name that of the narrowest scope that has one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from flyte_binary.domain.secrets import SecretId, searched_scopes
from flyte_binary.secret.vault import Vault


class ScopedValues:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def values(self, project: str, domain: str, names: Collection[str]) -> Mapping[str, bytes]:
        """By name; those that are in no scope are left out. Raises `FailedPrecondition` as `Vault.reveal` does."""
        scopes = searched_scopes(project, domain)
        revealed = await self._vault.reveal(names, scopes)
        found: dict[str, bytes] = {}
        for scope in reversed(scopes):
            here = {name: revealed.get(SecretId(scope, name)) for name in names}
            found |= {name: value for name, value in here.items() if value is not None}
        return found
