"""How cached outputs are named in the database.

The organisation is no part of the name (`ids`), nor is the run: two runs that compute the same share an entry.
"""

from __future__ import annotations

KEY_LIMIT = 512
"""Longest stored key, in characters: the width of the column, which PostgreSQL enforces and SQLite does not."""


def stored_key(project: str, domain: str, key: str) -> str:
    """The key of an entry and of its reservation: project and domain of the task, and the caller's own cache key.

    Names of projects and domains have no slash (callers refuse others), so two identities never share a key; the
    reference backend joins with dashes, where project `a-b` in `c` and project `a` in `b-c` meet. Callers also refuse
    results beyond `KEY_LIMIT`: only they know the field to name.
    """
    return f"{project}/{domain}/{key}"


def shared_key(key: str) -> str:
    """The same for entries that all projects share; no project has an empty name."""
    return stored_key("", "", key)
