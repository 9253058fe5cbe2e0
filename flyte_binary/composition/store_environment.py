"""The variables by which tasks of this machine reach a cloud's store, as the SDK looks for them.

Tasks see nothing else of the server's environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from flyte_binary.composition.store_connections import s3_connection
from flyte_binary.config.model import Config
from flyte_binary.config.stores import StoreChoice, StoreKind

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


def task_environment(config: Config, choice: StoreChoice, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` is the server's own."""
    variables = {StoreKind.S3: _s3}[choice.kind](config, environ)
    return {name: value for name, value in variables.items() if value}


def _s3(config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    connection = s3_connection(config, config.storage.stow.config)
    variables = {"FLYTE_AWS_ENDPOINT": connection.endpoint, "AWS_REGION": connection.region}
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
