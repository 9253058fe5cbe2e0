"""How Google Cloud Storage is reached. Needs no SDK to say it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsConnection:
    project: str = ""
    credentials_json: str = ""
    """As Google issues them, of any kind. Empty: Application Default Credentials."""
    scopes: tuple[str, ...] = ()
    endpoint: str = ""
    """Of an emulator or a private address; empty: Google's own."""
    signing_account: str = ""
    """E-mail of the service account that signs, where the credentials have no key and do not tell."""
    iam_endpoint: str = "https://iamcredentials.googleapis.com"
    anonymous: bool = False
