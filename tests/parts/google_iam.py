"""Google's token endpoint and IAM's signBlob, as far as a service account needs them, over a key made here."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ACCOUNT = "flyte@project.iam.gserviceaccount.com"
TOKEN = "token-of-the-service-account"


@dataclass
class GoogleIam:
    port: int = 0
    requests: list[str] = field(default_factory=list[str])
    """Paths that were asked for."""
    answers: list[int] = field(default_factory=list[int])
    """Statuses of the next signBlob calls, instead of what they would be."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> rsa.RSAPrivateKey:
        return _key()

    def service_account_json(self) -> str:
        """With the key in it."""
        pem = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return json.dumps(
            {
                "type": "service_account",
                "project_id": "project",
                "private_key_id": "1",
                "private_key": pem.decode(),
                "client_email": ACCOUNT,
                "token_uri": f"{self.url}/token",
            }
        )

    def user_json(self) -> str:
        """Of a user's login, which has no key to sign with."""
        return json.dumps(
            {
                "type": "authorized_user",
                "client_id": "id",
                "client_secret": "secret",
                "refresh_token": "refresh",
            }
        )

    def federated_json(self, folder: Path) -> str:
        """Of a workload that is known by a token in a file, which has none either."""
        subject = folder / "subject-token"
        subject.write_text("token-of-the-cluster")
        return json.dumps(
            {
                "type": "external_account",
                "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/p",
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "token_url": f"{self.url}/token",
                "credential_source": {"file": str(subject)},
            }
        )

    def verify(self, signature: bytes, text: bytes) -> None:
        """Raises `InvalidSignature`."""
        self.key.public_key().verify(signature, text, padding.PKCS1v15(), hashes.SHA256())

    def answer(self, path: str, authorization: str, body: bytes) -> tuple[int, dict[str, Any]]:
        self.requests.append(path)
        if path == "/token":
            kind = "urn:ietf:params:oauth:token-type:access_token"
            return 200, {"access_token": TOKEN, "issued_token_type": kind, "expires_in": 3600, "token_type": "Bearer"}
        if self.answers and (status := self.answers.pop(0)) != 200:
            return status, {"error": {"message": "not now", "code": status}}
        if path != f"/v1/projects/-/serviceAccounts/{ACCOUNT}:signBlob" or authorization != f"Bearer {TOKEN}":
            return 403, {"error": {"message": "permission denied", "code": 403}}
        payload = base64.b64decode(json.loads(body)["payload"])
        signed = self.key.sign(payload, padding.PKCS1v15(), hashes.SHA256())
        return 200, {"keyId": "1", "signedBlob": base64.b64encode(signed).decode()}


@cache
def _key() -> rsa.RSAPrivateKey:
    """It takes a while to make."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@contextmanager
def google_iam() -> Generator[GoogleIam]:
    iam = GoogleIam()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = iam.answer(self.path, self.headers.get("Authorization", ""), body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Not to the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    iam.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="google-iam")
    thread.start()
    try:
        yield iam
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
