"""How Azure Blob Storage is reached. Needs no SDK to say it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureConnection:
    account: str
    key: str = ""
    """Empty: the credentials that Azure's own programs find, and signed URLs by a user delegation key."""
    domain_suffix: str = "core.windows.net"
    endpoint: str = ""
    """Another address than the account's own, such as an emulator's with the account as its path."""
    upload_concurrency: int = 4

    @property
    def url(self) -> str:
        return self.endpoint or f"https://{self.account}.blob.{self.domain_suffix}"

    @property
    def host_in_uris(self) -> str:
        """What stands behind the `@` in the long form of a URI."""
        return f"{self.account}.dfs.{self.domain_suffix}"
