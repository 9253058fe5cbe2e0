"""The executor and its parts."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import psutil
from prometheus_client import CollectorRegistry, Gauge

from flyte_binary.composition.sharing import Sharing
from flyte_binary.config.model import Config
from flyte_binary.control.clock import SystemClock
from flyte_binary.control.controller import Controller
from flyte_binary.domain.callbacks import CallbackAddresses
from flyte_binary.domain.ids import ActionId
from flyte_binary.executor.admission import Admission
from flyte_binary.executor.archive import LogArchiver
from flyte_binary.executor.caching import Caching
from flyte_binary.executor.conclude import Caps, Concluder
from flyte_binary.executor.conditions import Conditions
from flyte_binary.executor.executor import Executor
from flyte_binary.executor.facts import Facts
from flyte_binary.executor.family import Family
from flyte_binary.executor.leftovers import Leftovers
from flyte_binary.executor.local.backend import LocalBackend
from flyte_binary.executor.reconciler import Reconciler
from flyte_binary.executor.results import ResultReader
from flyte_binary.executor.sharded import ShardedReconciler
from flyte_binary.executor.standstill import Standstill
from flyte_binary.executor.start import Starter
from flyte_binary.executor.waiting import Waiting
from flyte_binary.executor.webhooks import Webhooks
from flyte_binary.live.hub import Hub
from flyte_binary.runs.artifacts.produced import publish_produced
from flyte_binary.storage.store import ObjectStore

WORKERS = 16
"""Passes at the same time; each mostly waits for the database or the backend."""


@dataclass(frozen=True, slots=True)
class Execution:
    executor: Executor
    admission: Admission


def make_execution(
    config: Config,
    sharing: Sharing,
    hub: Hub,
    store: ObjectStore,
    backend: LocalBackend,
    clock: SystemClock,
    registry: CollectorRegistry,
    addresses: CallbackAddresses,
) -> Execution:
    settings = config.executor
    database = sharing.fenced
    facts = Facts(cache_across_projects=config.cache_service.across_projects)
    caching = Caching(store)
    controller: Controller[ActionId] = Controller("executor", lambda key: sharded.reconcile(key), workers=WORKERS)
    admission = Admission(
        cores=settings.cores or float(os.cpu_count() or 1),
        memory_bytes=settings.memory_bytes or psutil.virtual_memory().total,
        wake=controller.queue.add,
        slack_cores=1.0 if settings.cores is None else 0.0,
    )
    admission.closed = settings.paused
    waiting = Waiting(admission, Family())
    caps = Caps(
        retries=settings.max_retries,
        system_failures=settings.max_system_failures,
        infrastructure_failures=settings.max_infrastructure_failures,
    )
    results = ResultReader(store, backend)
    concluder = Concluder(database, results, clock, caps, backend.runtime_of, publish_produced)
    starter = Starter(
        database=database,
        backend=backend,
        admission=admission,
        caching=caching,
        concluder=concluder,
        clock=clock,
        node=sharing.node,
        alone=sharing.alone,
        log_limit_bytes=settings.logs.max_size_bytes,
        runtime_of=backend.runtime_of,
    )
    leftovers = Leftovers(
        database,
        backend,
        LogArchiver(store, backend),
        clock,
        stop_grace_seconds=settings.stop_grace.total_seconds(),
    )
    reconciler = Reconciler(
        database=database,
        backend=backend,
        admission=admission,
        waiting=waiting,
        starter=starter,
        concluder=concluder,
        leftovers=leftovers,
        conditions=Conditions(database, clock, Webhooks(addresses)),
        facts=facts,
        clock=clock,
        node=sharing.node,
    )
    sharded = ShardedReconciler(
        reconciler,
        sharing.shards,
        database=database,
        admission=admission,
        waiting=waiting,
        leftovers=leftovers,
        facts=facts,
    )
    executor = Executor(
        database=database,
        hub=hub,
        backend=backend,
        controller=controller,
        admission=admission,
        waiting=waiting,
        caching=caching,
        standstill=Standstill(database, backend, admission),
        leftovers=leftovers,
        facts=facts,
        shards=sharing.shards,
    )
    _gauge(registry, "flyte_executor_queue", "Actions that wait for a pass.", lambda: len(controller.queue))
    _gauge(registry, "flyte_executor_launches", "Attempts launched since the start.", lambda: starter.launches)
    _gauge(registry, "flyte_executor_attempts", "Attempts that hold a share.", lambda: len(admission.holders()))
    return Execution(executor, admission)


def _gauge(registry: CollectorRegistry, name: str, documentation: str, value: Callable[[], float]) -> None:
    Gauge(name, documentation, registry=registry).set_function(value)
