"""The variables by which tasks of this machine reach a cloud's store, as the SDK looks for them.

Tasks see nothing else of the server's environment.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from flyte_binary.composition.store_connections import azure_connection, gcs_connection, s3_connection
from flyte_binary.config.model import Config
from flyte_binary.config.stores import StoreChoice, StoreKind
from flyte_binary.storage.s3.connection import FIRST_REGION

_AWS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CA_BUNDLE",
)


_GOOGLE = "GOOGLE_APPLICATION_CREDENTIALS"

_AZURE = (
    "AZURE_TENANT_ID",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_AUTHORITY_HOST",
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "MSI_ENDPOINT",
)


def task_environment(config: Config, choice: StoreChoice, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` is the server's own. May write a file with credentials into the data folder."""
    match choice.kind:
        case StoreKind.S3:
            variables = _s3(config, environ)
        case StoreKind.GCS:
            variables = _gcs(config, environ)
        case StoreKind.AZURE:
            variables = _azure(config, choice, environ)
        case StoreKind.DISK:
            variables = {}
    return {name: value for name, value in variables.items() if value}


def _s3(config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    connection = s3_connection(config, config.storage.stow.config)
    found = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or FIRST_REGION
    variables = {"FLYTE_AWS_ENDPOINT": connection.endpoint, "AWS_REGION": connection.region or found}
    if not config.storage.share_credentials or connection.anonymous:
        return variables
    if connection.access_key_id:
        return {
            **variables,
            "FLYTE_AWS_ACCESS_KEY_ID": connection.access_key_id,
            "FLYTE_AWS_SECRET_ACCESS_KEY": connection.secret_key,
            "AWS_SESSION_TOKEN": connection.token,
        }
    return {**variables, **_aws_profile(environ), **{name: environ.get(name, "") for name in _AWS if name in environ}}


def _aws_profile(environ: Mapping[str, str]) -> dict[str, str]:
    """The user's own files, which a task does not find, since its home is another. The SDK takes them only when both
    a profile and the file of the configuration are named."""
    folder = Path(environ.get("HOME", "/nonexistent")) / ".aws"
    if "AWS_ACCESS_KEY_ID" in environ or not folder.is_dir():
        return {}
    return {
        "AWS_PROFILE": "default",
        "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
    }


def _gcs(config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    connection = gcs_connection(config.storage.stow.config)
    if connection.anonymous:
        # The SDK's driver takes another address, and no credentials, from a service account's file only.
        emulated = {"gcs_base_url": connection.endpoint, "disable_oauth": True, "client_email": "", "private_key": ""}
        file = _credentials_file(config, json.dumps({**emulated, "private_key_id": ""}))
        return {"GOOGLE_SERVICE_ACCOUNT": str(file)} if connection.endpoint else {"GOOGLE_SKIP_SIGNATURE": "true"}
    if not config.storage.share_credentials:
        return {}
    if connection.credentials_json:
        return {_GOOGLE: str(_credentials_file(config, connection.credentials_json))}
    own = Path(environ.get("HOME", "/nonexistent")) / ".config/gcloud/application_default_credentials.json"
    return {_GOOGLE: environ.get(_GOOGLE) or (str(own) if own.exists() else "")}


def _credentials_file(config: Config, content: str) -> Path:
    file = config.data_dir / "store-credentials.json"
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(content)
    draft.replace(file)
    return file


def _azure(config: Config, choice: StoreChoice, environ: Mapping[str, str]) -> dict[str, str]:
    connection = azure_connection(choice, config.storage.stow.config)
    variables = {
        "AZURE_STORAGE_ACCOUNT_NAME": connection.account,
        "AZURE_STORAGE_ENDPOINT": connection.endpoint,
        "AZURE_ALLOW_HTTP": "true" if connection.url.startswith("http:") else "",
    }
    if not config.storage.share_credentials:
        return variables
    if connection.key:
        return {**variables, "AZURE_STORAGE_ACCOUNT_KEY": connection.key}
    return {**variables, **{name: environ.get(name, "") for name in _AZURE}}
