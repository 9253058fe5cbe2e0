"""Azurite as it is with Entra ID: over TLS, with bearer tokens, and with keys that it lends for signing.

It looks at a token's claims, and not at its signature.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import ssl
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from azure.core.credentials import AccessToken
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.parts.azurite import start_server

_TENANT = "ab1f708d-50f6-404c-a006-d71b2ac7a606"


@dataclass(frozen=True)
class SecureAzurite:
    url: str
    certificate: Path

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))


@contextmanager
def azurite_with_tokens() -> Generator[SecureAzurite]:
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = _certificate(Path(folder))
        options = ("--oauth", "basic", "--cert", str(certificate), "--key", str(key))
        running = start_server(*options, scheme="https")
        try:
            yield SecureAzurite(f"https://127.0.0.1:{running.port}", certificate)
        finally:
            running.end()


class StorageToken:
    """The credential of somebody who may do everything with the account."""

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:  # any: as Azure's protocol has it
        now = int(time.time())
        claims = {
            "aud": "https://storage.azure.com",
            "iss": f"https://sts.windows.net/{_TENANT}/",
            "iat": now - 60,
            "nbf": now - 60,
            "exp": now + 3600,
            "oid": "23657296-5cd5-45b0-a809-d972a7f4dfe1",
            "tid": _TENANT,
            "ver": "1.0",
        }
        parts = [{"alg": "RS256", "typ": "JWT"}, claims]
        encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        return AccessToken(".".join([*encoded, "c2lnbmF0dXJl"]), now + 3600)


def _certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's Azurite")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate_file, key_file
