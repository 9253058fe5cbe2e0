"""Secrets, triggers, settings, artifacts: what the control plane keeps besides runs.

Revision ID: 0002
"""

from __future__ import annotations

import sqlalchemy as sa

revision = "0002"
down_revision = "0001"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """One function a service, in the order in which they came."""
