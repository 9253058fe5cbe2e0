"""Secrets, triggers, settings, artifacts: what the control plane keeps besides runs.

Revision ID: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """One function a service, in the order in which they came."""
    _several_servers()


def _several_servers() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.create_index("idx_actions_updated", "actions", ["updated_at"])
