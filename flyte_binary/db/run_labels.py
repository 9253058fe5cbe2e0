"""The `run_labels` table: labels of runs, for filters."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, insert

from flyte_binary.db.tables import run_labels
from flyte_binary.domain.ids import RunId

_INSERT = insert(run_labels)


def insert_labels(connection: Connection, run: RunId, labels: Mapping[str, str]) -> None:
    """Of a new run; its labels never change."""
    if labels:
        own = {"project": run.project, "domain": run.domain, "run": run.name}
        connection.execute(_INSERT, [{**own, "key": key, "value": value} for key, value in labels.items()])
