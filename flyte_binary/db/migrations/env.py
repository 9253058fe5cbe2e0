"""Alembic's entry: runs the migrations on the connection that `db/migrate.py` hands over."""

from __future__ import annotations

from alembic import context

from flyte_binary.db.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=False)
with context.begin_transaction():
    context.run_migrations()
