"""The tables, for both databases. Applied migrations repeat them; a test holds the two together."""

from __future__ import annotations

from flyte_binary.db.tables.apps import app_inputs as app_inputs
from flyte_binary.db.tables.apps import app_replicas as app_replicas
from flyte_binary.db.tables.apps import apps as apps
from flyte_binary.db.tables.artifacts import artifact_attributes as artifact_attributes
from flyte_binary.db.tables.artifacts import artifact_schemas as artifact_schemas
from flyte_binary.db.tables.artifacts import artifacts as artifacts
from flyte_binary.db.tables.columns import metadata as metadata
from flyte_binary.db.tables.retention import removals as removals
from flyte_binary.db.tables.secrets import secrets as secrets
from flyte_binary.db.tables.servers import servers as servers
from flyte_binary.db.tables.servers import shard_leases as shard_leases
from flyte_binary.db.tables.settings import settings as settings
from flyte_binary.db.tables.triggers import artifact_firings as artifact_firings
from flyte_binary.db.tables.triggers import trigger_revisions as trigger_revisions
from flyte_binary.db.tables.triggers import triggers as triggers
from flyte_binary.db.tables.work import UNFINISHED_SQL as UNFINISHED_SQL
from flyte_binary.db.tables.work import action_events as action_events
from flyte_binary.db.tables.work import actions as actions
from flyte_binary.db.tables.work import attempts as attempts
from flyte_binary.db.tables.work import cache_outputs as cache_outputs
from flyte_binary.db.tables.work import cache_reservations as cache_reservations
from flyte_binary.db.tables.work import projects as projects
from flyte_binary.db.tables.work import run_labels as run_labels
from flyte_binary.db.tables.work import task_specs as task_specs
from flyte_binary.db.tables.work import tasks as tasks
