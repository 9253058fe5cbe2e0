"""How S3 is reached. Needs no SDK to say it."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_REGION = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Connection:
    region: str = ""
    """Empty: the one that AWS programs find for themselves, or the first."""
    endpoint: str = ""
    """Of a store that is not Amazon's; it is asked in path style."""
    access_key_id: str = ""
    """Empty: whatever credentials boto3 finds by itself, such as those of a role."""
    secret_key: str = ""
    token: str = ""
    """Of temporary credentials."""
    v2_signing: bool = False
    """The signatures of old, for stores that know no others."""
    anonymous: bool = False
