"""From the keys of the configuration to how each cloud's store is reached."""

from __future__ import annotations

from pathlib import Path

from flyte_binary.config.model import Config, StoreAuth, StowConfig
from flyte_binary.config.stores import StoreChoice
from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.storage.azure.connection import AzureConnection
from flyte_binary.storage.gcs.connection import GcsConnection
from flyte_binary.storage.s3.connection import S3Connection


def s3_connection(config: Config, stow: StowConfig) -> S3Connection:
    """`stow` is what holds for this use of it, requests or signed URLs. `storage.connection` fills what it leaves
    open. Raises `FailedPrecondition` if the file of the secret key cannot be read."""
    older = config.storage.connection
    auth = older.auth_type if stow.auth_type is StoreAuth.AUTO else stow.auth_type
    own_keys = auth in (StoreAuth.AUTO, StoreAuth.ACCESSKEY)
    access_key = stow.access_key_id or older.access_key
    if auth is StoreAuth.ACCESSKEY and not access_key:
        raise FailedPrecondition("storage.stow.config.auth_type is accesskey, but there is no access_key_id")
    endpoint = stow.endpoint or older.endpoint
    return S3Connection(
        region=stow.region or older.region,
        endpoint=with_scheme(endpoint, plain=stow.disable_ssl or older.disable_ssl),
        access_key_id=access_key if own_keys else "",
        secret_key=_secret_key(config, stow) if own_keys and access_key else "",
        token=stow.token if own_keys else "",
        v2_signing=stow.v2_signing,
        anonymous=auth is StoreAuth.ANONYMOUS,
    )


def gcs_connection(stow: StowConfig) -> GcsConnection:
    """Raises `FailedPrecondition` if the file of the credentials cannot be read."""
    given = stow.json if stow.auth_type in (StoreAuth.AUTO, StoreAuth.ACCESSKEY) else ""
    if given and not given.lstrip().startswith("{"):
        given = _read(Path(given).expanduser(), "storage.stow.config.json")
    return GcsConnection(
        project=stow.project_id,
        credentials_json=given,
        scopes=stow.scopes,
        endpoint=with_scheme(stow.endpoint, plain=stow.disable_ssl),
        signing_account=stow.signing_account,
        iam_endpoint=stow.iam_endpoint,
        anonymous=stow.auth_type is StoreAuth.ANONYMOUS,
    )


def azure_connection(choice: StoreChoice, stow: StowConfig) -> AzureConnection:
    """Raises `FailedPrecondition` if no storage account is named."""
    # abfs://container@account.dfs.core.windows.net/...
    in_uri = choice.base_uri.partition("://")[2].partition("/")[0].partition("@")[2].partition(".")[0]
    if not (account := stow.account or in_uri):
        raise FailedPrecondition("storage.stow.config.account: expected the name of the storage account")
    return AzureConnection(
        account=account,
        key=stow.key if stow.auth_type in (StoreAuth.AUTO, StoreAuth.ACCESSKEY) else "",
        domain_suffix=stow.domain_suffix,
        endpoint=with_scheme(stow.endpoint or stow.base_url, plain=stow.disable_ssl),
        upload_concurrency=stow.upload_concurrency,
    )


def with_scheme(endpoint: str, *, plain: bool) -> str:
    if not endpoint or "://" in endpoint:
        return endpoint.rstrip("/")
    return f"{'http' if plain else 'https'}://{endpoint}".rstrip("/")


def _secret_key(config: Config, stow: StowConfig) -> str:
    if stow.secret_key_path is None:
        return stow.secret_key or config.storage.connection.secret_key
    return _read(stow.secret_key_path, "storage.stow.config.secret_key_path").strip()


def _read(path: Path, setting: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FailedPrecondition(f"{setting}: cannot read {path}: {error}") from error
