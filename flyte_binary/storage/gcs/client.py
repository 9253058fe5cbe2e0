"""Credentials and a client of google-cloud-storage, as this store wants them."""

from __future__ import annotations

import json
from typing import Any, cast

import google.auth
from google.auth import aws, identity_pool
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from google.cloud import storage
from google.cloud.storage.retry import DEFAULT_RETRY
from google.oauth2 import service_account
from google.oauth2.credentials import Credentials as UserCredentials
from requests.adapters import HTTPAdapter

from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.storage.gcs.connection import GcsConnection

PUBLIC_ENDPOINT = "https://storage.googleapis.com"
TIMEOUT = (5, 60)
"""Seconds to connect and between two pieces of an answer."""
RETRY = DEFAULT_RETRY.with_timeout(20)
"""For every call: all that this store does may be done twice."""

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_NO_PROJECT = "none"
"""Projects matter for making buckets, which this server does not."""


# Any: google.auth's credentials have no types.
def make_credentials(connection: GcsConnection) -> Any:
    """Raises `FailedPrecondition` for JSON that holds none, and google.auth's errors if there are none to find."""
    if connection.anonymous:
        return AnonymousCredentials()
    scopes = list(connection.scopes) or [_SCOPE]
    if not connection.credentials_json:
        return cast("Any", google.auth).default(scopes=scopes)[0]  # Any: as above
    try:
        info = json.loads(connection.credentials_json)
        return _given_credentials(info, scopes)
    except (ValueError, KeyError, TypeError, GoogleAuthError) as error:
        raise FailedPrecondition(f"storage.stow.config.json holds no credentials of Google: {error}") from error


def _given_credentials(info: dict[str, Any], scopes: list[str]) -> Any:  # Any: JSON; and as above
    kind = info["type"]
    if kind == "service_account":
        return cast("Any", service_account.Credentials).from_service_account_info(info, scopes=scopes)
    if kind == "authorized_user":
        return cast("Any", UserCredentials).from_authorized_user_info(info)
    if kind == "external_account":
        is_aws = "environment_id" in info.get("credential_source", {})
        federated = cast("Any", aws.Credentials if is_aws else identity_pool.Credentials)
        return federated.from_info(info, scopes=scopes)
    raise ValueError(f"type is {kind!r}; expected service_account, authorized_user or external_account")


def make_client(connection: GcsConnection, credentials: Any, *, connections: int) -> storage.Client:  # Any: as above
    """May be used by `connections` threads at once. Talks to nobody yet."""
    session = cast("Any", AuthorizedSession)(credentials)  # Any: as above
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=connections))
    client = cast("Any", storage.Client)(  # Any: its constructor has no types
        project=connection.project or _NO_PROJECT,
        credentials=credentials,
        _http=session,
        client_options={"api_endpoint": connection.endpoint} if connection.endpoint else None,
    )
    # Else it asks for the bucket's metadata behind our back, to describe traces that we do not make, and needs a right
    # for it that this server does not.
    client._bucket_metadata_cache = None
    return client
