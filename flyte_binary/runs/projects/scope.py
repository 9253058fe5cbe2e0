"""Whether a project and a domain exist: asked by whatever is created in them."""

from __future__ import annotations

from collections.abc import Collection

from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import NotFound


def require_project(tx: Transaction, project: str) -> None:
    """Archived ones count. Raises `NotFound`."""
    if tx.projects.get(project) is None:
        raise NotFound(f'project "{project}" not found')


def require_domain(domain: str, known: Collection[str]) -> None:
    """Every project has the configured domains and no others. Raises `NotFound`."""
    if domain not in known:
        raise NotFound(f'domain "{domain}" not found; this server has {", ".join(sorted(known))}')
