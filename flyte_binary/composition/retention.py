"""What removes what is too old."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge

from flyte_binary.config.model import Config
from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.runs.retention.sweeper import KeptFor, Sweeper
from flyte_binary.storage.store import ObjectStore


def make_sweeper(
    config: Config, database: Database, store: ObjectStore, clock: Clock, registry: CollectorRegistry
) -> Sweeper | None:
    """None if everything is kept for ever."""
    settings = config.retention
    kept_for = KeptFor(runs=settings.runs, cache=settings.cache, uploads=settings.uploads)
    if not kept_for.anything_goes:
        return None
    sweeper = Sweeper(
        database=database,
        store=store,
        clock=clock,
        kept_for=kept_for,
        uploads_prefix=config.dataproxy.upload.storage_prefix,
        interval=settings.interval,
    )
    removed = sweeper.removed
    counted: dict[str, Callable[[], float]] = {
        "runs": lambda: removed.runs,
        "cache_entries": lambda: removed.cache_entries,
        "objects": lambda: removed.objects,
    }
    for name, value in counted.items():
        gauge = Gauge(f"flyte_retention_{name}_removed", f"Removed since the start: {name}.", registry=registry)
        gauge.set_function(value)
    return sweeper
