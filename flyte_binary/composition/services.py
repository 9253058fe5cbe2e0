"""The RPC services, each with what it needs."""

from __future__ import annotations

from flyteidl2.project import project_service_pb2

from flyte_binary.actions.abort import Aborter
from flyte_binary.actions.enqueue import Enqueuer
from flyte_binary.actions.events_proxy import EventsProxy
from flyte_binary.actions.internal_runs import InternalRunService
from flyte_binary.actions.queue_state import QueueService, StateService
from flyte_binary.actions.recorded_events import EventRecorder
from flyte_binary.actions.service import ActionsService
from flyte_binary.actions.signal import Signaller
from flyte_binary.actions.updates import Updates
from flyte_binary.app.logs_service import AppLogsService
from flyte_binary.app.service import AppService
from flyte_binary.auth.identity_service import IdentityService
from flyte_binary.auth.metadata_service import AuthMetadataService, PublicClient
from flyte_binary.cache.reservations import Heartbeats
from flyte_binary.cache.service import CacheService
from flyte_binary.cache.v1_service import CacheServiceV1
from flyte_binary.composition.apps import AppParts
from flyte_binary.config.model import Config
from flyte_binary.control.clock import SystemClock
from flyte_binary.dataproxy.action_data import MESSAGE_LIMIT_BYTES, ActionDataReader
from flyte_binary.dataproxy.cluster import ClusterService
from flyte_binary.dataproxy.download_links import DownloadLinks
from flyte_binary.dataproxy.images import ImageService
from flyte_binary.dataproxy.inputs import InputUploads
from flyte_binary.dataproxy.log_tail import LogTails
from flyte_binary.dataproxy.lookups import ActionLookup, ProjectLookup, RunBaseLookup, TaskLookup, TriggerLookup
from flyte_binary.dataproxy.require import KnownProjects
from flyte_binary.dataproxy.run_logs_service import RunLogsService
from flyte_binary.dataproxy.service import DataProxyService
from flyte_binary.dataproxy.translator.service import TranslatorService
from flyte_binary.dataproxy.translator.sources import LiteralSources
from flyte_binary.dataproxy.uploads import Uploads
from flyte_binary.db.database import Database
from flyte_binary.executor.local.backend import LocalBackend
from flyte_binary.live.hub import Hub
from flyte_binary.rpc.mount import ServiceMount
from flyte_binary.runs.artifacts.service import ArtifactService
from flyte_binary.runs.projects.domain_service import DomainService
from flyte_binary.runs.projects.service import ProjectService
from flyte_binary.runs.service import RunService
from flyte_binary.runs.settings.service import SettingsService
from flyte_binary.runs.tasks.service import TaskService
from flyte_binary.runs.tracked.service import TrackedRunService
from flyte_binary.runs.triggers.service import TriggerService
from flyte_binary.secret.service import SecretService
from flyte_binary.secret.vault import Vault
from flyte_binary.storage.store import ObjectStore
from flyte_binary.storage.uris import join


def make_services(
    config: Config,
    database: Database,
    hub: Hub,
    store: ObjectStore,
    backend: LocalBackend,
    clock: SystemClock,
    aborter: Aborter,
    vault: Vault,
    apps: AppParts,
) -> list[ServiceMount]:
    domains = [domain.id for domain in config.runs.domains]
    enqueuer, updates = Enqueuer(database, store, clock), Updates(database, hub)
    signaller, recorder = Signaller(database, clock), EventRecorder(database, clock)
    heartbeats = Heartbeats(
        longest=config.cache_service.max_reservation_heartbeat,
        grace_multiplier=config.cache_service.heartbeat_grace_period_multiplier,
    )
    logs = LogTails(ActionLookup(database), backend, store, hub)
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
        "workflow.TrackedRunService": TrackedRunService(
            database=database,
            hub=hub,
            store=store,
            clock=clock,
            domains=domains,
            aborter=aborter,
            signaller=signaller,
            uploads=join(store.base_uri, config.dataproxy.upload.storage_prefix),
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
        "task.TaskService": TaskService(database=database, store=store, clock=clock, domains=domains),
        "trigger.TriggerService": TriggerService(database=database, store=store, clock=clock, domains=domains),
        "artifact.ArtifactService": ArtifactService(database=database, clock=clock, domains=domains),
        "project.ProjectService": ProjectService(
            database=database,
            clock=clock,
            domains=[
                project_service_pb2.Domain(id=domain.id, name=domain.name or domain.id)
                for domain in config.runs.domains
            ],
        ),
        "dataproxy.DataProxyService": _data_proxy(config, database, store, domains, logs),
        "workflow.RunLogsService": RunLogsService(logs),
        "workflow.TranslatorService": _translator(config, database, store),
        "cluster.ClusterService": ClusterService(),
        "imagebuilder.ImageService": ImageService(
            backend.environments, registry=config.executor.images.registry, names=config.executor.images.names
        ),
        "cacheservice.v2.CacheService": (
            entries := CacheService(database, clock, heartbeats, across_projects=config.cache_service.across_projects)
        ),
        "cacheservice.CacheService": CacheServiceV1(entries),
        "org.DomainService": DomainService([(domain.id, domain.name or domain.id) for domain in config.runs.domains]),
        "settings.SettingsService": SettingsService(database, store, clock),
        "secret.SecretService": SecretService(vault, cluster=config.secret.kubernetes.cluster_name),
        "auth.IdentityService": IdentityService(),
        "auth.AuthMetadataService": AuthMetadataService(PublicClient()),
    }
    implementations |= _app_services(config, database, hub, clock, apps)
    return [ServiceMount(f"flyteidl2.{name}", service) for name, service in implementations.items()]


def _app_services(
    config: Config, database: Database, hub: Hub, clock: SystemClock, apps: AppParts
) -> dict[str, object]:
    return {
        "app.AppService": AppService(
            database=database,
            hub=hub,
            backend=apps.backend,
            clock=clock,
            domains=[domain.id for domain in config.runs.domains],
            longest_request=config.internal_apps.max_request_timeout,
        ),
        "app.AppLogsService": AppLogsService(database, apps.logs),
    }


def _data_proxy(
    config: Config,
    database: Database,
    store: ObjectStore,
    domains: list[str],
    logs: LogTails,
) -> DataProxyService:
    projects = KnownProjects(ProjectLookup(database), domains)
    tasks, actions = TaskLookup(database), ActionLookup(database)
    return DataProxyService(
        uploads=Uploads(store, projects, config.dataproxy.upload),
        inputs=InputUploads(store, projects, tasks, RunBaseLookup(database)),
        data=ActionDataReader(store, actions, limit_bytes=_download_limit_bytes(config)),
        links=DownloadLinks(store, actions, tasks, config.dataproxy.download),
        logs=logs,
    )


def _translator(config: Config, database: Database, store: ObjectStore) -> TranslatorService:
    actions = ActionLookup(database)
    reader = ActionDataReader(store, actions, limit_bytes=_download_limit_bytes(config))
    return TranslatorService(LiteralSources(reader, actions, TriggerLookup(database)))


def _download_limit_bytes(config: Config) -> int:
    return config.storage.limits.max_download_mbs * 1024 * 1024 or MESSAGE_LIMIT_BYTES
