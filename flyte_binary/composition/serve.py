"""The server as a whole: what is opened in which order, and who waits for whom at the end."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from starlette.middleware import Middleware

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.callbacks import Callbacks
from flyte_binary.actions.signal import Signaller
from flyte_binary.app.apps import Apps
from flyte_binary.app.ingress.ingress import AppIngress
from flyte_binary.app.ingress.pool import Pool
from flyte_binary.app.ingress.tunnel import Tunnel
from flyte_binary.auth.metadata_service import well_known_routes
from flyte_binary.composition.apps import open_local_apps
from flyte_binary.composition.databases import open_database, uses_postgres
from flyte_binary.composition.execution import make_execution
from flyte_binary.composition.local import local_backend, loopback
from flyte_binary.composition.retention import make_sweeper
from flyte_binary.composition.scheduling import Scheduling, make_scheduling
from flyte_binary.composition.secrets import open_vault
from flyte_binary.composition.services import make_services
from flyte_binary.composition.sharing import common_listener, share
from flyte_binary.composition.stores import open_store
from flyte_binary.config.model import Config
from flyte_binary.console.routes import console_folder, console_routes
from flyte_binary.control.clock import SystemClock
from flyte_binary.db.database import Database
from flyte_binary.domain.callbacks import CallbackAddresses
from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.executor.admission import Admission
from flyte_binary.executor.build_image import seed_build_image
from flyte_binary.executor.executor import Executor
from flyte_binary.executor.local.interpreter import Interpreter
from flyte_binary.lifecycle import SWITCH_INTERVAL_SECONDS, Stop, cancel, held, leave
from flyte_binary.live.hub import Hub
from flyte_binary.logging_setup import configure_logging
from flyte_binary.rpc.access_log import AccessLog
from flyte_binary.rpc.calls import CallSettings
from flyte_binary.rpc.disconnect import Drain
from flyte_binary.rpc.health import ReadinessCheck
from flyte_binary.rpc.identity import OpenAccess, TrustedPeers
from flyte_binary.rpc.mount import mount
from flyte_binary.runs.projects.service import seed_projects
from flyte_binary.runs.retention.sweeper import Sweeper
from flyte_binary.secret.values import ScopedValues
from flyte_binary.server import AddressInUse, Server, build_app
from flyte_binary.storage.signed import UrlSigner, load_or_create_key
from flyte_binary.terminal import Facts as BannerFacts
from flyte_binary.terminal import banner

_SCHEDULER_STOP_SECONDS = 2.0
"""A run that it is about to start is made or not, and if not, by the next server."""


def serve(config: Config) -> int:
    """Run the server until it is told to stop; the exit code of a start that failed.

    Raises `FlyteError` with a sentence for whatever keeps it from starting.
    """
    configure_logging(config.logger)
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        asyncio.run(_serve(config))
    except AddressInUse as error:
        sys.stderr.write(f"flyte-binary: {error}\n")
        return 2
    leave(0)


async def _serve(config: Config) -> None:
    try:
        config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FailedPrecondition(f"dataDir: cannot create {config.data_dir}: {error.strerror}") from error
    with held(config.data_dir, shared=uses_postgres(config)):
        async with AsyncExitStack() as stack:
            parts = await stack.enter_async_context(_parts(config))
            stop = Stop(parts.running_tasks, parts.stop_tasks)
            stop.install()
            # What the start has made stays: the collector need not look at it again and again.
            gc.collect()
            gc.freeze()
            # Messages and rows come and go without cycles; the default looks after every 700 of them.
            gc.set_threshold(20_000, 20, 20)
            await _run_until_stopped(config, parts, stop)


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
    serving_apps = asyncio.create_task(parts.apps.run(), name="apps")
    scheduling = parts.scheduling and asyncio.create_task(parts.scheduling.run(), name="scheduling")
    sweeping = parts.sweeper and asyncio.create_task(parts.sweeper.run(), name="retention")
    stopping = asyncio.create_task(stop.requested.wait(), name="stop-requested")
    await asyncio.wait({serving, executing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    parts.server.stop()
    for task in (serving_apps, scheduling, sweeping):
        if task is not None:
            await cancel(task, within=_SCHEDULER_STOP_SECONDS)
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
    database: Database
    aborter: Aborter
    apps: Apps
    scheduling: Scheduling | None
    sweeper: Sweeper | None

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
            console_path=config.console.base_path,
            interpreter=interpreter.path,
            interpreter_note=note,
            project=seeds[0] if seeds else "flytesnacks",
            domain=config.runs.domains[0].id if config.runs.domains else "development",
            adopted=len(self.admission.holders()),
        )


@asynccontextmanager
async def _parts(config: Config) -> AsyncGenerator[Parts]:
    drain = Drain()
    server = Server(
        app=_not_ready,
        drain=drain,
        host=config.runs.server.host,
        port=config.runs.server.port,
        upgrades=Tunnel,
        shutdown_timeout=config.runs.server.shutdown_timeout,
    )
    port = server.bind()
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        hub = Hub()
        database = await open_database(config, hub, stack)
        await database.write(lambda tx: seed_projects(tx, config.runs.seed_projects, clock.now()))
        await database.write(lambda tx: seed_build_image(tx, clock.now()))
        vault = await open_vault(config, database)
        sharing = await share(config, database, hub)
        key = load_or_create_key(config.data_dir / "url-signing.key")
        signer = UrlSigner(key)
        addresses = CallbackAddresses(key=key, base_url=_public_url(config, port))
        opened = await open_store(config, signer, stack, os.environ)
        store = opened.store
        task_port = port if sharing.alone else _common_port(config, server)
        backend = local_backend(config, task_port, store, opened.task_environment, ScopedValues(vault))
        stack.push_async_callback(backend.stop_serving)
        interpreter = await backend.start()
        registry = _registry()
        apps = await open_local_apps(
            config,
            database,
            hub,
            store,
            backend,
            clock,
            stack,
            public_url=_public_url(config, port),
            internal_url=f"http://{loopback(config.runs.server.host)}:{task_port}",
            node=sharing.node,
        )
        pool = Pool()
        stack.callback(pool.close_all)
        execution = make_execution(config, sharing, hub, store, backend, clock, registry, addresses)
        aborter = Aborter(database, clock)
        server.app = build_app(
            mount(
                make_services(config, database, hub, store, backend, clock, aborter, vault, apps),
                _call_settings(config, drain, registry),
            ),
            drain=drain,
            routes=[
                *opened.routes,
                *well_known_routes(),
                *console_routes(console_folder(), config.console.base_path),
                *Callbacks(database, Signaller(database, clock), addresses).routes(),
            ],
            readiness=[ReadinessCheck("database", database.ping)],
            registry=registry,
            allowed_hosts=_allowed_hosts(config),
            allowed_origins=config.runs.server.cors.allowed_origins,
            ingress=Middleware(
                AppIngress,
                activator=apps.activator,
                trusted_peers=TrustedPeers(config.runs.identity_headers.trusted_peers),
                pool=pool,
                drain=drain,
                own_hosts=_allowed_hosts(config),
            ),
        )
        yield Parts(
            server=server,
            executor=execution.executor,
            admission=execution.admission,
            interpreter=interpreter,
            database=database,
            aborter=aborter,
            apps=apps.apps,
            scheduling=make_scheduling(config, database, hub, store, clock),
            sweeper=make_sweeper(config, database, store, clock, registry),
        )


def _common_port(config: Config, server: Server) -> int:
    listener = common_listener(config.data_dir / "executor", loopback(config.runs.server.host))
    server.also_listen(listener)
    return listener.getsockname()[1]


async def _not_ready(_scope: object, _receive: object, _send: object) -> None:
    raise RuntimeError("a request came in before the application was built")


def _public_url(config: Config, port: int) -> str:
    server = config.runs.server
    return server.public_url.rstrip("/") or f"http://{loopback(server.host)}:{port}"


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
