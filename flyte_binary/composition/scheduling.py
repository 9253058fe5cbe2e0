"""What starts the runs of triggers: the clock, and new versions of artifacts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from flyte_binary.config.model import Config
from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.live.hub import Hub
from flyte_binary.runs.create import RunCreator
from flyte_binary.runs.triggers.artifact_triggers import ArtifactTriggers
from flyte_binary.runs.triggers.firing import Firing
from flyte_binary.runs.triggers.pace import Pace
from flyte_binary.runs.triggers.scheduler import CatchUp, TriggerScheduler
from flyte_binary.storage.store import ObjectStore


@dataclass(frozen=True, slots=True)
class Scheduling:
    by_time: TriggerScheduler
    by_artifact: ArtifactTriggers

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.by_time.run(), name="scheduler")
            group.create_task(self.by_artifact.run(), name="artifact-triggers")


def make_scheduling(
    config: Config, database: Database, hub: Hub, store: ObjectStore, clock: Clock
) -> Scheduling | None:
    """None if the configuration wants none."""
    settings = config.runs.trigger_scheduler
    if not settings.enabled:
        return None
    creator = RunCreator(database, store, clock, [domain.id for domain in config.runs.domains])
    pace = Pace(settings.execution_qps, settings.execution_burst)
    by_time = TriggerScheduler(
        database=database,
        hub=hub,
        clock=clock,
        firing=Firing(database, creator),
        pace=pace,
        catch_up=CatchUp(policy=settings.catchup_policy, limit=settings.max_catchup_runs_per_loop),
        resync=settings.resync_interval,
    )
    by_artifact = ArtifactTriggers(
        database=database, hub=hub, clock=clock, creator=creator, pace=pace, resync=settings.resync_interval
    )
    return Scheduling(by_time, by_artifact)
