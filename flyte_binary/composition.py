"""Puts the server together: the one place that names concrete classes and reads the configuration tree."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import structlog
from flyteidl2.project import project_service_pb2
from prometheus_client import CollectorRegistry, Gauge, PlatformCollector, ProcessCollector

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.callbacks import Callbacks
from flyte_binary.actions.enqueue import Enqueuer
from flyte_binary.actions.events_proxy import EventsProxy
from flyte_binary.actions.internal_runs import InternalRunService
from flyte_binary.actions.queue_state import QueueService, StateService
from flyte_binary.actions.recorded_events import EventRecorder
from flyte_binary.actions.service import ActionsService
from flyte_binary.actions.signal import Signaller
from flyte_binary.actions.updates import Updates
from flyte_binary.auth.identity_service import IdentityService
from flyte_binary.auth.metadata_service import AuthMetadataService, PublicClient, well_known_routes
from flyte_binary.cache.reservations import Heartbeats
from flyte_binary.cache.service import CacheService
from flyte_binary.config.model import Config
from flyte_binary.control.clock import SystemClock
from flyte_binary.control.controller import Controller
from flyte_binary.dataproxy.action_data import ActionDataReader
from flyte_binary.dataproxy.cluster import ClusterService
from flyte_binary.dataproxy.download_links import DownloadLinks
from flyte_binary.dataproxy.images import ImageService
from flyte_binary.dataproxy.inputs import InputUploads
from flyte_binary.dataproxy.log_tail import LogTails
from flyte_binary.dataproxy.lookups import ActionLookup, ProjectLookup, TaskLookup
from flyte_binary.dataproxy.require import KnownProjects
from flyte_binary.dataproxy.service import DataProxyService
from flyte_binary.dataproxy.signed_routes import signed_routes
from flyte_binary.dataproxy.uploads import Uploads
from flyte_binary.db.migrate import upgrade
from flyte_binary.db.sqlite import SqliteDatabase, make_engine
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
from flyte_binary.executor.local.interpreter import Interpreter
from flyte_binary.executor.local.settings import LocalSettings
from flyte_binary.executor.reconciler import Reconciler
from flyte_binary.executor.results import ResultReader
from flyte_binary.executor.standstill import Standstill
from flyte_binary.executor.start import Starter
from flyte_binary.executor.waiting import Waiting
from flyte_binary.executor.webhooks import Webhooks
from flyte_binary.lifecycle import SWITCH_INTERVAL_SECONDS, Stop, cancel, sole_server
from flyte_binary.live.hub import Hub
from flyte_binary.logging_setup import configure_logging
from flyte_binary.rpc.access_log import AccessLog
from flyte_binary.rpc.calls import CallSettings
from flyte_binary.rpc.disconnect import Drain
from flyte_binary.rpc.health import ReadinessCheck
from flyte_binary.rpc.identity import OpenAccess, TrustedPeers
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.runs.projects.service import ProjectService, seed_projects
from flyte_binary.runs.service import RunService
from flyte_binary.runs.tasks.service import TaskService
from flyte_binary.server import AddressInUse, Server, build_app
from flyte_binary.storage.disk import DiskStore
from flyte_binary.storage.signed import UrlSigner, load_or_create_key
from flyte_binary.terminal import Facts as BannerFacts
from flyte_binary.terminal import banner

log = structlog.get_logger(__name__)

WORKERS = 16
"""Passes at the same time; each mostly waits for the database or the backend."""


def serve(config: Config) -> int:
    """Run the server until it is told to stop; the exit code.

    Raises `FlyteError` with a sentence for whatever keeps it from starting.
    """
    configure_logging(config.logger)
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        return asyncio.run(_serve(config))
    except AddressInUse as error:
        sys.stderr.write(f"flyte-binary: {error}\n")
        return 2


async def _serve(config: Config) -> int:
    config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with sole_server(config.data_dir):
        async with AsyncExitStack() as stack:
            parts = await stack.enter_async_context(_parts(config))
            stop = Stop(parts.running_tasks, parts.stop_tasks)
            stop.install()
            await _run_until_stopped(config, parts, stop)
    return 0


async def _run_until_stopped(config: Config, parts: Parts, stop: Stop) -> None:
    serving = asyncio.create_task(parts.server.serve(), name="http")
    await parts.server.until_started()
    adopted = asyncio.Event()
    executing = asyncio.create_task(parts.executor.run(adopted.set), name="executor")
    await asyncio.wait(
        {executing, asyncio.create_task(adopted.wait(), name="adopted")}, return_when=asyncio.FIRST_COMPLETED
    )
    if adopted.is_set():
        sys.stdout.write(banner(parts.banner_facts(config)) + "\n")
        sys.stdout.flush()
    stopping = asyncio.create_task(stop.requested.wait(), name="stop-requested")
    await asyncio.wait({serving, executing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    parts.server.stop()
    await serving
    if executing.done():
        await executing  # it never ends by itself: its error is ours
    await cancel(executing, within=config.runs.server.shutdown_timeout.total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the rest of the start needs of the server."""

    server: Server
    executor: Executor
    admission: Admission
    interpreter: Interpreter
    database: SqliteDatabase
    aborter: Aborter

    def running_tasks(self) -> int:
        return len(self.admission.holders())

    async def stop_tasks(self) -> None:
        """Abort every unfinished run; the executor stops the processes."""
        rows = await self.database.read(lambda tx: tx.actions.unfinished())
        for run in sorted({row.run_id for row in rows}):
            await self.aborter.abort(run.root(), "the server was stopped at its terminal", None)
        for _ in range(100):
            if not self.admission.holders():
                return
            await asyncio.sleep(0.1)

    def banner_facts(self, config: Config) -> BannerFacts:
        interpreter = self.interpreter
        note = (
            f"Python {interpreter.python}, flyte {interpreter.flyte}"
            if not interpreter.problem
            else interpreter.problem
        )
        host = config.runs.server.host
        shown = f"[{host}]" if ":" in host else host
        seeds = config.runs.seed_projects
        return BannerFacts(
            url=f"http://{shown}:{self.server.port}",
            data_dir=config.data_dir,
            interpreter=interpreter.path,
            interpreter_note=note,
            project=seeds[0] if seeds else "flytesnacks",
            domain=config.runs.domains[0].id if config.runs.domains else "development",
            adopted=len(self.admission.holders()),
        )


@asynccontextmanager
async def _parts(config: Config) -> AsyncIterator[Parts]:
    drain = Drain()
    server = Server(
        app=_not_ready,
        drain=drain,
        host=config.runs.server.host,
        port=config.runs.server.port,
        shutdown_timeout=config.runs.server.shutdown_timeout,
    )
    port = server.bind()
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        hub = Hub()
        database = await _open_database(config, hub, clock)
        stack.push_async_callback(database.close)
        key = load_or_create_key(config.data_dir / "url-signing.key")
        signer = UrlSigner(key)
        addresses = CallbackAddresses(key=key, base_url=_public_url(config, port))
        store = DiskStore(Path(config.store_uri), signer)
        await store.prepare()
        stack.callback(store.close)
        backend = LocalBackend(_local_settings(config, port), store)
        stack.push_async_callback(backend.stop_serving)
        interpreter = await backend.start()
        registry = _registry()
        execution = _execution(config, database, hub, store, backend, interpreter, clock, registry, addresses)
        aborter = Aborter(database, clock)
        server.app = build_app(
            mount(
                _services(config, database, hub, store, backend, clock, aborter),
                _call_settings(config, drain, registry),
            ),
            drain=drain,
            routes=[
                *signed_routes(store, signer, max_upload_bytes=config.dataproxy.upload.max_size_bytes),
                *well_known_routes(),
                *Callbacks(database, Signaller(database, clock), addresses).routes(),
            ],
            readiness=[ReadinessCheck("database", database.ping)],
            registry=registry,
            allowed_hosts=_allowed_hosts(config),
            allowed_origins=config.runs.server.cors.allowed_origins,
        )
        yield Parts(
            server=server,
            executor=execution.executor,
            admission=execution.admission,
            interpreter=interpreter,
            database=database,
            aborter=aborter,
        )


async def _not_ready(_scope: object, _receive: object, _send: object) -> None:
    raise RuntimeError("a request came in before the application was built")


async def _open_database(config: Config, hub: Hub, clock: SystemClock) -> SqliteDatabase:
    engine = make_engine(config.sqlite_path)
    upgrade(engine)
    engine.dispose()
    database = SqliteDatabase(config.sqlite_path, hub.publish)
    await database.write(lambda tx: seed_projects(tx, config.runs.seed_projects, clock.now()))
    return database


def _local_settings(config: Config, port: int) -> LocalSettings:
    executor = config.executor
    environment = {name: os.environ[name] for name in executor.pass_environment if name in os.environ}
    return LocalSettings(
        folder=config.data_dir / "executor",
        endpoint=f"{_loopback(config.runs.server.host)}:{port}",
        interpreter=executor.interpreter or _own_interpreter(),
        environment={**environment, **executor.environment},
        fork_server=executor.fork_server,
    )


def _public_url(config: Config, port: int) -> str:
    server = config.runs.server
    return server.public_url or f"http://{_loopback(server.host)}:{port}"


def _loopback(host: str) -> str:
    """Where tasks of this machine reach a server that listens on `host`."""
    if host in ("0.0.0.0", "localhost"):  # compared, not bound
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host


def _own_interpreter() -> Path:
    """The active virtual environment's, else the server's own."""
    active = os.environ.get("VIRTUAL_ENV")
    candidate = Path(active) / "bin" / "python" if active else None
    return candidate if candidate is not None and candidate.is_file() else Path(sys.executable)


@dataclass(frozen=True, slots=True)
class _Execution:
    executor: Executor
    admission: Admission


def _execution(
    config: Config,
    database: SqliteDatabase,
    hub: Hub,
    store: DiskStore,
    backend: LocalBackend,
    interpreter: Interpreter,
    clock: SystemClock,
    registry: CollectorRegistry,
    addresses: CallbackAddresses,
) -> _Execution:
    settings = config.executor
    facts = Facts()
    caching = Caching(store)
    controller: Controller[ActionId] = Controller("executor", lambda key: reconciler.reconcile(key), workers=WORKERS)
    admission = Admission(
        cores=settings.cores or float(os.cpu_count() or 1),
        memory_bytes=settings.memory_bytes or psutil.virtual_memory().total,
        wake=controller.queue.add,
    )
    admission.closed = settings.paused
    waiting = Waiting(admission, Family())
    caps = Caps(
        retries=settings.max_retries,
        system_failures=settings.max_system_failures,
        infrastructure_failures=settings.max_infrastructure_failures,
    )
    concluder = Concluder(database, ResultReader(store, backend), clock, caps)
    starter = Starter(
        database=database,
        backend=backend,
        admission=admission,
        caching=caching,
        concluder=concluder,
        clock=clock,
        node=str(config.data_dir),
        log_limit_bytes=settings.logs.max_size_bytes,
        runtime_versions=(interpreter.python, interpreter.flyte),
    )
    reconciler = Reconciler(
        database=database,
        backend=backend,
        admission=admission,
        waiting=waiting,
        starter=starter,
        concluder=concluder,
        leftovers=Leftovers(
            database,
            backend,
            LogArchiver(store, backend),
            clock,
            stop_grace_seconds=settings.stop_grace.total_seconds(),
        ),
        conditions=Conditions(database, clock, Webhooks(addresses)),
        facts=facts,
        clock=clock,
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
        facts=facts,
    )
    _gauge(registry, "flyte_executor_queue", "Actions that wait for a pass.", lambda: len(controller.queue))
    _gauge(registry, "flyte_executor_attempts", "Attempts that hold a share.", lambda: len(admission.holders()))
    return _Execution(executor, admission)


def _services(
    config: Config,
    database: SqliteDatabase,
    hub: Hub,
    store: DiskStore,
    backend: LocalBackend,
    clock: SystemClock,
    aborter: Aborter,
) -> list[ServiceMount]:
    domains = [domain.id for domain in config.runs.domains]
    enqueuer, updates = Enqueuer(database, store, clock), Updates(database, hub)
    signaller, recorder = Signaller(database, clock), EventRecorder(database, clock)
    heartbeats = Heartbeats(
        longest=config.cache_service.max_reservation_heartbeat,
        grace_multiplier=config.cache_service.heartbeat_grace_period_multiplier,
    )
    implementations: dict[str, object] = {
        "workflow.RunService": RunService(
            database=database,
            hub=hub,
            store=store,
            clock=clock,
            domains=domains,
            aborter=aborter,
            signaller=signaller,
        ),
        "workflow.InternalRunService": InternalRunService(database, clock, recorder),
        "workflow.EventsProxyService": EventsProxy(recorder),
        "workflow.QueueService": QueueService(enqueuer, aborter),
        "workflow.StateService": StateService(database, updates),
        "actions.ActionsService": ActionsService(
            enqueuer=enqueuer,
            updates=updates,
            aborter=aborter,
            signaller=signaller,
            database=database,
            clock=clock,
        ),
        "task.TaskService": TaskService(database=database, clock=clock, domains=domains),
        "project.ProjectService": ProjectService(
            database=database,
            clock=clock,
            domains=[
                project_service_pb2.Domain(id=domain.id, name=domain.name or domain.id)
                for domain in config.runs.domains
            ],
        ),
        "dataproxy.DataProxyService": _data_proxy(config, database, hub, store, backend, domains),
        "cluster.ClusterService": ClusterService(),
        "imagebuilder.ImageService": ImageService(),
        "cacheservice.v2.CacheService": CacheService(database, clock, heartbeats),
        "auth.IdentityService": IdentityService(),
        "auth.AuthMetadataService": AuthMetadataService(PublicClient()),
    }
    return [ServiceMount(f"flyteidl2.{name}", service) for name, service in implementations.items()]


def _data_proxy(
    config: Config,
    database: SqliteDatabase,
    hub: Hub,
    store: DiskStore,
    backend: LocalBackend,
    domains: list[str],
) -> DataProxyService:
    projects = KnownProjects(ProjectLookup(database), domains)
    tasks, actions = TaskLookup(database), ActionLookup(database)
    return DataProxyService(
        uploads=Uploads(store, projects, config.dataproxy.upload),
        inputs=InputUploads(store, projects, tasks),
        data=ActionDataReader(store, actions),
        links=DownloadLinks(store, actions, tasks, config.dataproxy.download),
        logs=LogTails(actions, backend, store, hub),
    )


def _call_settings(config: Config, drain: Drain, registry: CollectorRegistry) -> CallSettings:
    identity = config.runs.identity_headers
    trusted = TrustedPeers(identity.trusted_peers)
    return CallSettings(
        limit_bytes=config.runs.server.max_request_size_bytes,
        drain=drain,
        authenticator=OpenAccess(
            trusted_peers=trusted,
            claims_header=identity.claims_jwt_header,
            subject_header=identity.subject_header,
            email_header=identity.email_header,
        ),
        trusted_peers=trusted,
        access_log=AccessLog(registry),
    )


def _allowed_hosts(config: Config) -> list[str]:
    server = config.runs.server
    public = urlsplit(server.public_url).hostname
    return [*server.allowed_hosts, server.host, *([public] if public else [])]


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


def _gauge(registry: CollectorRegistry, name: str, documentation: str, value: object) -> None:
    Gauge(name, documentation, registry=registry).set_function(value)  # pyright: ignore[reportArgumentType]
