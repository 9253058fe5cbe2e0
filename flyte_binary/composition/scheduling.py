"""The scheduler of triggers."""

from __future__ import annotations

from flyte_binary.config.model import Config
from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.live.hub import Hub
from flyte_binary.runs.create import RunCreator
from flyte_binary.runs.triggers.firing import Firing
from flyte_binary.runs.triggers.pace import Pace
from flyte_binary.runs.triggers.scheduler import CatchUp, TriggerScheduler
from flyte_binary.storage.store import ObjectStore


def make_scheduler(
    config: Config, database: Database, hub: Hub, store: ObjectStore, clock: Clock
) -> TriggerScheduler | None:
    """None if the configuration wants none."""
    settings = config.runs.trigger_scheduler
    if not settings.enabled:
        return None
    domains = [domain.id for domain in config.runs.domains]
    return TriggerScheduler(
        database=database,
        hub=hub,
        clock=clock,
        firing=Firing(database, RunCreator(database, store, clock, domains)),
        pace=Pace(settings.execution_qps, settings.execution_burst),
        catch_up=CatchUp(policy=settings.catchup_policy, limit=settings.max_catchup_runs_per_loop),
        resync=settings.resync_interval,
    )
