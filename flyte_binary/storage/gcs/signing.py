"""Who signs URLs: the key that the credentials hold, or Google's IAM in the name of a service account.

Credentials without a key are the usual ones in a cluster (workload identity, the machine's own, federated ones).
https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/signBlob
"""

from __future__ import annotations

import base64
from typing import Any

from google.auth.credentials import Signing
from google.auth.transport.requests import AuthorizedSession, Request

from flyte_binary.domain.errors import FailedPrecondition, Unavailable
from flyte_binary.storage.gcs.client import TIMEOUT
from flyte_binary.storage.gcs.connection import GcsConnection

_ATTEMPTS = 4
_BUSY = frozenset({429, 500, 502, 503, 504})


# Any, in this module: google.auth's credentials have no types.
def signer_of(credentials: Any, connection: GcsConnection) -> Any:
    """What `generate_signed_url` takes for its credentials. May ask the machine who it is; raises
    `FailedPrecondition` if nobody can sign."""
    if isinstance(credentials, Signing) and not connection.signing_account:
        return credentials
    if connection.anonymous:
        raise FailedPrecondition("signed URLs need credentials, and storage.stow.config.auth_type is anonymous")
    return IamSigner(credentials, _account(credentials, connection), connection.iam_endpoint)


class IamSigner(Signing):
    """Has IAM sign with a key that Google keeps. Each signature is a request of its own."""

    def __init__(self, credentials: Any, account: str, endpoint: str) -> None:
        self._session: Any = AuthorizedSession(credentials)
        self._account = account
        self._url = f"{endpoint.rstrip('/')}/v1/projects/-/serviceAccounts/{account}:signBlob"

    @property
    def signer_email(self) -> str:
        return self._account

    @property
    def signer(self) -> None:
        """The key stays with Google."""
        return

    def close(self) -> None:
        self._session.close()

    def sign_bytes(self, message: bytes) -> bytes:
        status, said = 0, ""
        for _ in range(_ATTEMPTS):
            answer = self._session.post(
                self._url, json={"payload": base64.b64encode(message).decode()}, timeout=TIMEOUT
            )
            status, said = answer.status_code, answer.text[:300]
            if status == 200:
                return base64.b64decode(answer.json()["signedBlob"])
            if status not in _BUSY:
                raise FailedPrecondition(
                    f"IAM does not sign URLs in the name of {self._account} ({status}: {said}): grant this server's "
                    "credentials iam.serviceAccounts.signBlob on it (the role Service Account Token Creator)"
                )
        raise Unavailable(f"IAM did not sign a URL in the name of {self._account}: {status} {said}")


def _account(credentials: Any, connection: GcsConnection) -> str:
    if connection.signing_account:
        return connection.signing_account
    account = getattr(credentials, "service_account_email", None)
    if account == "default":  # the machine's own, which does not know its name before it was asked
        credentials.refresh(Request())
        account = credentials.service_account_email
    if not account:
        raise FailedPrecondition(
            "the Google credentials of this server cannot sign URLs and name no service account: set "
            "storage.stow.config.signing_account to its e-mail"
        )
    return account
