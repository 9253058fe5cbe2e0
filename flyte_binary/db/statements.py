"""Helpers that every repository shares: conditions on ids, values of rows."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Table, and_

from flyte_binary.domain.ids import ActionId, RunId


def of_run(table: Table, run: RunId) -> ColumnElement[bool]:
    columns = table.c
    return and_(columns.project == run.project, columns.domain == run.domain, columns.run == run.name)


def of_action(table: Table, action: ActionId) -> ColumnElement[bool]:
    columns = table.c
    return and_(
        columns.project == action.project,
        columns.domain == action.domain,
        columns.run == action.run,
        columns.name == action.name,
    )
