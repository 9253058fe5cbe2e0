"""Every setting of the server, with its default and its meaning.

The defaults are a laptop's: nothing has to be set. The YAML key of a field is its name in camelCase, unless `key` says
otherwise; the paths are those of the reference backend where the idea is the same. `docs/configuration.md` is made from
the docstrings here (`make docs`). Durations are `timedelta` and sizes `int` with `_bytes`; YAML wants their unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated

from flyte_binary.config.apps import InternalApps
from flyte_binary.config.bounds import HEADER, HOST, LISTEN, NAME, ORIGIN, PATH, POSTGRES_URL, URL, Between
from flyte_binary.domain.catchup import CatchupPolicy


def _key(name: str) -> Mapping[str, str]:
    """Metadata of a field whose YAML key is not its name in camelCase."""
    return {"key": name}


_SECRET: Mapping[str, object] = {"secret": True}
"""Metadata of a field that `check-config` does not print."""


class LogLevel(Enum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @classmethod
    def _missing_(cls, value: object) -> LogLevel | None:
        """Also `warn`, and the numbers 0 (panic) to 5 (debug) of the reference backend."""
        numbers = {"5": cls.DEBUG, "4": cls.INFO, "3": cls.WARNING, "2": cls.ERROR, "1": cls.ERROR, "0": cls.ERROR}
        return {**numbers, "warn": cls.WARNING}.get(str(value).lower())


class LogFormat(Enum):
    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatter:
    type: LogFormat = LogFormat.AUTO
    """Shape of the server's own log lines: `text`, `json`, or `auto`, which is text at a terminal and JSON elsewhere.
    YAML: logger.formatter.type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logger:
    level: LogLevel = LogLevel.INFO
    """The least level that the server logs: `debug`, `info`, `warning` or `error`, or the reference backend's numbers 0
    to 5. YAML: logger.level."""

    formatter: Formatter = field(default_factory=Formatter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    allowed_origins: tuple[Annotated[str, ORIGIN], ...] = ()
    """Origins of the web pages that may call this server from a browser, besides its own. YAML:
    runs.server.cors.allowedOrigins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    host: Annotated[str, LISTEN] = "127.0.0.1"
    """Address to listen on. Any other than a loopback address needs authentication, or `allowUnauthenticated`. YAML:
    runs.server.host."""

    port: Annotated[int, Between(0, 65535)] = 30080
    """Port to listen on; 0 takes a free one. `flyte create config --devbox` points at the default. YAML:
    runs.server.port."""

    public_url: Annotated[str, URL] = ""
    """Scheme and host under which users reach this server, for links that it hands out; with a path, if a proxy in
    front takes one off. Empty: the address under which each request came in. YAML: runs.server.publicUrl."""

    allowed_hosts: tuple[Annotated[str, HOST], ...] = ()
    """Names that the Host header of a request may carry besides `localhost`, IP addresses, `host` and the host of
    `publicUrl`; `*.example.com` allows all names under it, `*` allows all. The check keeps a web page from reaching
    this server through a name of its own that resolves to it. YAML: runs.server.allowedHosts."""

    allow_unauthenticated: bool = False
    """Listen on an address that others can reach although nobody has to log in. Everybody who reaches it may then run
    programs on this machine. YAML: runs.server.allowUnauthenticated."""

    max_request_size_bytes: Annotated[int, Between(1024 * 1024)] = 64 * 1024 * 1024
    """Largest body of a request, after decompression. YAML: runs.server.maxRequestSize."""

    shutdown_timeout: timedelta = timedelta(seconds=10)
    """How long a stop waits for requests in progress before it cuts them. YAML: runs.server.shutdownTimeout."""

    cors: Cors = field(default_factory=Cors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    id: Annotated[str, NAME]
    """What requests and paths call the domain. YAML: runs.domains[].id."""

    name: str = ""
    """What the console calls it; the id if empty. YAML: runs.domains[].name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sqlite:
    path: Path | None = None
    """The database file, on a disk of this machine (no network share). Default: `flyte.db` in `dataDir`. YAML:
    runs.database.sqlite.path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """Used when `url` or `host` is set; needs the extra `postgres`."""

    url: Annotated[str, POSTGRES_URL] = field(default="", metadata=_SECRET)
    """`postgresql://user:password@host:5432/flyte?sslmode=require`, as libpq takes it: special characters
    percent-encoded, several hosts separated by commas, `?host=/folder` for a unix socket. Instead of the settings that
    follow, except for passwords from elsewhere. YAML: runs.database.postgres.url."""

    host: str = ""
    """Host of the database; several separated by commas, or the folder of a unix socket. YAML:
    runs.database.postgres.host."""

    port: Annotated[int, Between(1, 65535)] = 5432
    """Port of the database. YAML: runs.database.postgres.port."""

    dbname: str = field(default="flyte", metadata=_key("dbname"))
    """Name of the database; it is created if the user may. YAML: runs.database.postgres.dbname."""

    username: str = "postgres"
    """User of the database. YAML: runs.database.postgres.username."""

    password: str = field(default="", metadata=_SECRET)
    """That user's password. YAML: runs.database.postgres.password."""

    password_path: Path | None = None
    """File that holds the password; read for every new connection. YAML: runs.database.postgres.passwordPath."""

    password_command: tuple[str, ...] = ()
    """Program and arguments that print the password, for tokens that expire; run for every new connection. YAML:
    runs.database.postgres.passwordCommand."""

    options: str = ""
    """More parameters of the connection, as `name=value` separated by spaces: `sslmode=verify-full
    sslrootcert=/etc/ca.pem`. YAML: runs.database.postgres.options."""

    max_open_connections: Annotated[int, Between(5)] = 13
    """Connections that one server opens at most: two that write, one that listens, the others read. YAML:
    runs.database.postgres.maxOpenConnections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    sqlite: Sqlite = field(default_factory=Sqlite)
    postgres: Postgres = field(default_factory=Postgres)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityHeaders:
    trusted_peers: tuple[str, ...] = ()
    """Addresses or networks (`10.0.0.0/8`) of the proxies whose identity headers and `X-Forwarded-*` are believed.
    From anyone else they are ignored. YAML: runs.identityHeaders.trustedPeers."""

    claims_jwt_header: Annotated[str, HEADER] = "X-Amzn-Oidc-Data"
    """Header that carries the user's claims as a JWT. Empty: none. YAML: runs.identityHeaders.claimsJwtHeader."""

    subject_header: Annotated[str, HEADER] = "X-Amzn-Oidc-Identity"
    """Header that carries the user's subject as plain text. Empty: none. YAML: runs.identityHeaders.subjectHeader."""

    email_header: Annotated[str, HEADER] = ""
    """Header that carries the user's e-mail address as plain text. Empty: none. YAML:
    runs.identityHeaders.emailHeader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerScheduler:
    enabled: bool = True
    """Start the runs of triggers, when their time has come or a version of their artifact was published. With several
    servers on one database each may, and nothing is fired twice. YAML: runs.triggerScheduler.enabled."""

    resync_interval: timedelta = timedelta(seconds=30)
    """How long the scheduler sleeps at most before it looks into the database again: after a clock was set, or a hint
    was lost. YAML: runs.triggerScheduler.resyncInterval."""

    catchup_policy: CatchupPolicy = CatchupPolicy.LAST
    """What becomes of the times that came while no server was running: `last` fires the last of them, `all` fires them
    one after the other, the newest `maxCatchupRunsPerLoop` of each trigger, and `skip` fires none that is more than a
    minute late. The time that a run is for is always the one of the schedule. YAML:
    runs.triggerScheduler.catchupPolicy."""

    max_catchup_runs_per_loop: Annotated[int, Between(1, 10_000)] = 100
    """How many times of one trigger are caught up at most, under `all`. YAML:
    runs.triggerScheduler.maxCatchupRunsPerLoop."""

    execution_qps: Annotated[float, Between(0.01)] = 10.0
    """Runs that the scheduler starts per second, in the long run. YAML: runs.triggerScheduler.executionQps."""

    execution_burst: Annotated[int, Between(1)] = 20
    """Runs that it starts at once after a quiet time. YAML: runs.triggerScheduler.executionBurst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    storage_prefix: str = ""
    """Where inputs, outputs, code and logs are stored: an absolute path (or `file:///...`), or `s3://bucket/folder`,
    `gs://...`, `abfs://...`. Default: the container that `storage` names, or `store` in `dataDir`. YAML:
    runs.storagePrefix."""

    seed_projects: tuple[Annotated[str, NAME], ...] = ("flytesnacks",)
    """Projects that the start creates if they do not exist. YAML: runs.seedProjects."""

    domains: tuple[Domain, ...] = (
        Domain(id="development", name="Development"),
        Domain(id="production", name="Production"),
        Domain(id="staging", name="Staging"),
    )
    """The domains that every project has, as a list of `id` and `name`. YAML: runs.domains."""

    server: Server = field(default_factory=Server)
    database: Database = field(default_factory=Database)
    identity_headers: IdentityHeaders = field(default_factory=IdentityHeaders)
    trigger_scheduler: TriggerScheduler = field(default_factory=TriggerScheduler)


class StorageType(Enum):
    AUTO = "auto"
    STOW = "stow"
    LOCAL = "local"
    S3 = "s3"
    MINIO = "minio"


class StowKind(Enum):
    S3 = "s3"
    GOOGLE = "google"
    AZURE = "azure"
    LOCAL = "local"

    @classmethod
    def _missing_(cls, value: object) -> StowKind | None:
        """The provider's name, as the reference's chart has it, too."""
        return cls.GOOGLE if str(value).lower() in ("gcs", "gs") else None


class StoreAuth(Enum):
    AUTO = "auto"
    ACCESSKEY = "accesskey"
    IAM = "iam"
    ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class StowConfig:
    auth_type: StoreAuth = field(default=StoreAuth.AUTO, metadata=_key("auth_type"))
    """`accesskey`: the keys given here. `iam`: what the cloud's own programs find (variables, files, the role of the
    machine). `auto`: the keys if they are given, else `iam`. `anonymous`: none. YAML: storage.stow.config.auth_type."""

    access_key_id: str = field(default="", metadata=_key("access_key_id"))
    """S3: the key's public half. YAML: storage.stow.config.access_key_id."""

    secret_key: str = field(default="", metadata={**_key("secret_key"), **_SECRET})
    """S3: the key's secret half. YAML: storage.stow.config.secret_key."""

    secret_key_path: Path | None = field(default=None, metadata=_key("secret_key_path"))
    """S3: file that holds the secret key, instead of `secret_key`. YAML: storage.stow.config.secret_key_path."""

    token: str = field(default="", metadata=_SECRET)
    """S3: of temporary credentials. YAML: storage.stow.config.token."""

    region: str = ""
    """S3: region of the bucket; `auto` for some compatibles. Default: the one that AWS programs find for themselves, or
    us-east-1. YAML: storage.stow.config.region."""

    endpoint: str = ""
    """URL of a store that is not the cloud's own (an S3 compatible is asked in path style, an Azure one with the
    account as the URL's path). Empty: the cloud's. YAML: storage.stow.config.endpoint."""

    disable_ssl: bool = field(default=False, metadata=_key("disable_ssl"))
    """Plain HTTP, where `endpoint` has no scheme. YAML: storage.stow.config.disable_ssl."""

    v2_signing: bool = field(default=False, metadata=_key("v2_signing"))
    """S3: the signatures of old, for stores that know no others. YAML: storage.stow.config.v2_signing."""

    project_id: str = field(default="", metadata=_key("project_id"))
    """Google: the project that pays for the requests. YAML: storage.stow.config.project_id."""

    json: str = field(default="", metadata=_SECRET)
    """Google: the credentials as JSON, or the path of a file with them. Empty: Application Default Credentials. YAML:
    storage.stow.config.json."""

    scopes: tuple[str, ...] = ()
    """Google: OAuth scopes instead of the default. YAML: storage.stow.config.scopes."""

    signing_account: str = field(default="", metadata=_key("signing_account"))
    """Google: e-mail of the service account whose name signed URLs carry, where the credentials have no key and do not
    tell. They need `iam.serviceAccounts.signBlob` on it. YAML: storage.stow.config.signing_account."""

    iam_endpoint: str = field(default="https://iamcredentials.googleapis.com", metadata=_key("iam_endpoint"))
    """Google: where to have URLs signed. YAML: storage.stow.config.iam_endpoint."""

    account: str = ""
    """Azure: name of the storage account. YAML: storage.stow.config.account."""

    key: str = field(default="", metadata=_SECRET)
    """Azure: key of the account. Empty: the credentials that Azure's programs find; signed URLs are made with a user
    delegation key then. YAML: storage.stow.config.key."""

    domain_suffix: str = field(default="core.windows.net", metadata=_key("domain_suffix"))
    """Azure: of another cloud, such as `core.usgovcloudapi.net`. YAML: storage.stow.config.domain_suffix."""

    base_url: str = field(default="", metadata=_key("base_url"))
    """Azure: the older name of `endpoint`. YAML: storage.stow.config.base_url."""

    upload_concurrency: Annotated[int, Between(1, 64)] = field(default=4, metadata=_key("upload_concurrency"))
    """Azure: blocks of a large file that are sent at the same time. YAML: storage.stow.config.upload_concurrency."""

    path: Path | None = None
    """Local: the folder, if `runs.storagePrefix` names none. YAML: storage.stow.config.path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stow:
    kind: StowKind = StowKind.S3
    """Which cloud, with `type: stow`. YAML: storage.stow.kind."""

    config: StowConfig = field(default_factory=StowConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConnection:
    """The older way to say how S3 is reached; what `storage.stow.config` says comes first."""

    endpoint: str = ""
    """See `storage.stow.config.endpoint`. YAML: storage.connection.endpoint."""

    auth_type: StoreAuth = field(default=StoreAuth.AUTO, metadata=_key("auth-type"))
    """See `storage.stow.config.auth_type`. YAML: storage.connection.auth-type."""

    access_key: str = field(default="", metadata=_key("access-key"))
    """See `storage.stow.config.access_key_id`. YAML: storage.connection.access-key."""

    secret_key: str = field(default="", metadata={**_key("secret-key"), **_SECRET})
    """See `storage.stow.config.secret_key`. YAML: storage.connection.secret-key."""

    region: str = ""
    """See `storage.stow.config.region`. YAML: storage.connection.region."""

    disable_ssl: bool = field(default=False, metadata=_key("disable-ssl"))
    """See `storage.stow.config.disable_ssl`. YAML: storage.connection.disable-ssl."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedUrls:
    stow_config_override: Mapping[str, str] = field(default_factory=dict[str, str], metadata=_SECRET)
    """What of `storage.stow.config` is different for signed URLs: `{endpoint: "https://s3.example.com"}` where clients
    reach the store under another address than this server does. YAML: storage.signedURL.stowConfigOverride."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLimits:
    max_download_mbs: Annotated[int, Between(0, 2047)] = field(default=64, metadata=_key("maxDownloadMBs"))
    """Largest inputs or outputs that are sent to a client, in MiB; 0 is the most that a message holds, 2 GiB. YAML:
    storage.limits.maxDownloadMBs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    type: StorageType = StorageType.AUTO
    """`stow` is the cloud of `stow.kind`, `minio` is `s3`. `auto`: the cloud of the scheme of `runs.storagePrefix`
    (`s3`, `gs`, `abfs`), or of `stow.kind` if a container is named here, else the local disk. YAML: storage.type."""

    container: str = ""
    """Bucket or container of the store, if `runs.storagePrefix` names none. All of it may be used. YAML:
    storage.container."""

    metadata_container: str = ""
    """Bucket or container that holds everything that this server itself writes; before `container`. YAML:
    storage.metadataContainer."""

    enable_multicontainer: bool = field(default=False, metadata=_key("enable-multicontainer"))
    """Runs may name any bucket that the credentials reach for what they read and write through this server. YAML:
    storage.enable-multicontainer."""

    allowed_containers: tuple[str, ...] = ()
    """Other buckets that they may name. YAML: storage.allowedContainers."""

    share_credentials: bool = True
    """Local attempts get the address of the store and the credentials given here, or else those that this server's own
    environment has, as variables. YAML: storage.shareCredentials."""

    stow: Stow = field(default_factory=Stow)
    connection: StorageConnection = field(default_factory=StorageConnection)
    signed_url: SignedUrls = field(default_factory=SignedUrls, metadata=_key("signedURL"))
    limits: StorageLimits = field(default_factory=StorageLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    max_size_bytes: int = 100 * 1024 * 1024
    """Largest file that a signed upload URL takes. YAML: dataproxy.upload.maxSize."""

    max_expires_in: timedelta = timedelta(hours=1)
    """Longest life of a signed upload URL. YAML: dataproxy.upload.maxExpiresIn."""

    storage_prefix: str = "uploads"
    """Folder below `runs.storagePrefix` that uploads go to. YAML: dataproxy.upload.storagePrefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    max_expires_in: timedelta = timedelta(hours=1)
    """Longest life of a signed download URL. YAML: dataproxy.download.maxExpiresIn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataproxy:
    upload: Upload = field(default_factory=Upload)
    download: Download = field(default_factory=Download)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheService:
    heartbeat_grace_period_multiplier: Annotated[int, Between(1)] = 3
    """After how many missed heartbeats the reservation of an owner outside this server expires. YAML:
    cache_service.heartbeatGracePeriodMultiplier."""

    max_reservation_heartbeat: timedelta = timedelta(seconds=10)
    """Longest time between two heartbeats that such an owner may ask for. YAML:
    cache_service.maxReservationHeartbeat."""

    across_projects: bool = False
    """Let outputs that are cached in one project and domain be found in all others, for runs whose cache lookup scope
    is global, which is the SDK's default, and for callers of the CacheService. Whoever may start a run then gets to
    see outputs of other projects. What was cached before under the other value is not found any more. YAML:
    cache_service.acrossProjects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLogs:
    max_size_bytes: Annotated[int, Between(64 * 1024)] = 100 * 1024 * 1024
    """Size at which the log of one attempt is cut, with a line that says so. YAML: executor.logs.maxSize."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    uv: Path | None = None
    """The program uv, which builds a virtual environment from the layers of an image. Default: that of the Python
    package uv beside the server, else the one on PATH. Without it nothing is built, and tasks of every image run
    under `executor.interpreter`. Builds see the server's UV_*, SSL_CERT_* and proxy variables, and pip's index if uv
    has none of its own. YAML: executor.images.uv."""

    interpreters: Mapping[str, str] = field(default_factory=dict[str, str])
    """Pythons of environments that exist already, by the name of the image whose tasks run there. A map, or a list of
    maps. YAML: executor.images.interpreters."""

    unused_for: Annotated[timedelta, Between(3600)] = timedelta(days=30)
    """How long an environment is kept that no task has used. YAML: executor.images.unusedFor."""

    max_size_bytes: Annotated[int, Between(0)] = 20 * 1024**3
    """Above this size of all environments together the longest unused are removed. YAML: executor.images.maxSize."""

    registry: str = ""
    """Where images are that somebody else builds and pushes, `registry.example.com/team`: the SDK's image builder
    `remote` is told that every image is there, and nothing is built here. For Kubernetes. YAML:
    executor.images.registry."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Whole names of single images that somebody else builds, by `name:tag` or what the SDK calls them. A map, or a
    list of maps. YAML: executor.images.names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    interpreter: Path | None = None
    """The Python that tasks run under; it needs the `flyte` package. Default: the one of the active virtual
    environment, else the server's own. YAML: executor.interpreter."""

    cores: Annotated[float, Between(0.1)] | None = None
    """CPU cores that running tasks may ask for together; one that asks for nothing counts as one core. Default: all of
    this machine, and one more for tasks that ask for nothing, since starting and I/O leave cores idle. YAML:
    executor.cores."""

    memory_bytes: Annotated[int, Between(64 * 1024 * 1024)] | None = None
    """Memory that running tasks may ask for together. Default: all of this machine. YAML: executor.memory."""

    fork_server: bool = True
    """Start attempts as forks of a process that has the SDK loaded already, where the system can: tens of milliseconds
    instead of about a second. YAML: executor.forkServer."""

    max_system_failures: Annotated[int, Between(0)] = 3
    """How many failures of the platform, other than lost processes, one action survives before it fails for good.
    YAML: executor.maxSystemFailures."""

    max_infrastructure_failures: Annotated[int, Between(0)] = 10
    """How many times one action survives that its process is lost (killed from outside, machine restarted). YAML:
    executor.maxInfrastructureFailures."""

    max_retries: Annotated[int, Between(0)] = 100
    """Upper limit for the retries that a task asks for. YAML: executor.maxRetries."""

    paused: bool = False
    """Start no attempts: actions are taken in and wait, what runs goes on. YAML: executor.paused."""

    stop_grace: Annotated[timedelta, Between(0)] = timedelta(seconds=5)
    """How long an attempt has between being asked to end and being killed. YAML: executor.stopGrace."""

    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables of every task, below those of the task itself. A map, or a list of maps. YAML:
    executor.environment."""

    pass_environment: tuple[str, ...] = ()
    """Names of environment variables that every task gets from the server, whose own environment tasks do not see
    otherwise. YAML: executor.passEnvironment."""

    logs: TaskLogs = field(default_factory=TaskLogs)
    images: Images = field(default_factory=Images)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretKubernetes:
    cluster_name: str = "flyte-devbox"
    """What the cluster is called on which secrets are said to be present. YAML: secret.kubernetes.clusterName."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    key_file: Path | None = None
    """File with the keys that secrets are encrypted with in the database, one a line in base64, the newest last. Made
    with the first secret; without it they are lost, so back it up, but not beside the database. Default: `secrets.key`
    in `dataDir`. YAML: secret.keyFile."""

    keys: tuple[str, ...] = field(default=(), metadata=_SECRET)
    """The keys themselves, instead of a file: 32 bytes in base64 each, the newest last. For servers without a common
    data folder. YAML: secret.keys."""

    kubernetes: SecretKubernetes = field(default_factory=SecretKubernetes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    runs: Annotated[timedelta, Between(60)] | None = None
    """How long a run is kept after its end, with its actions, events, logs, inputs and outputs. One whose files the
    cache, an artifact or another run refers to is kept as long as those. Default: for ever. YAML: retention.runs."""

    cache: Annotated[timedelta, Between(60)] | None = None
    """How long a cached output is remembered after it was last written. Default: for ever. YAML: retention.cache."""

    uploads: Annotated[timedelta, Between(48 * 3600)] | None = None
    """How long uploaded code, files and inputs are kept that no task, run or trigger uses; at least two days, because
    the `flyte` command remembers for a day what it has uploaded. Default: for ever. YAML: retention.uploads."""

    interval: Annotated[timedelta, Between(1)] = timedelta(hours=1)
    """How often is looked for what is too old. YAML: retention.interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    base_path: Annotated[str, PATH] = "/v2"
    """Path of the console; `/` leads there. The links that the SDK prints lead to `/v2`, so another one needs a proxy
    that knows both. YAML: console.basePath."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    data_dir: Path = field(default_factory=lambda: Path("~/.flyte-binary").expanduser())
    """Folder of everything that this server keeps: database, object store, running attempts. YAML: dataDir."""

    runs: Runs = field(default_factory=Runs)
    storage: Storage = field(default_factory=Storage)
    dataproxy: Dataproxy = field(default_factory=Dataproxy)
    cache_service: CacheService = field(default_factory=CacheService, metadata=_key("cache_service"))
    executor: Executor = field(default_factory=Executor)
    secret: Secret = field(default_factory=Secret)
    internal_apps: InternalApps = field(default_factory=InternalApps)
    console: Console = field(default_factory=Console)
    retention: Retention = field(default_factory=Retention)
    logger: Logger = field(default_factory=Logger)

    @property
    def sqlite_path(self) -> Path:
        return self.runs.database.sqlite.path or self.data_dir / "flyte.db"
