"""nginx and HAProxy as one meets them at the edge: TLS ends there, and the server lies below a path of its own."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.parts import debian
from tests.parts.running import Running, start

BELOW = "/flyte"
"""The path at the edge, which the server does not see."""

SOURCE = "127.0.0.2"
"""From where the proxies call, so that the server knows them from others of this machine."""


@dataclass(frozen=True)
class Edge:
    running: Running

    @property
    def origin(self) -> str:
        return f"https://127.0.0.1:{self.running.port}"

    @property
    def url(self) -> str:
        return self.origin + BELOW


def start_nginx(inside: int) -> Running:
    """Says `Host` of the inner address, as nginx does unless it is told not to."""
    return _start("nginx", debian.nginx, lambda port, folder: _nginx(port, folder, inside))


def start_haproxy(inside: int) -> Running:
    return _start("haproxy", debian.haproxy, lambda port, folder: _haproxy(port, folder, inside))


def _start(
    name: str,
    program: Callable[[], tuple[Path, dict[str, str]]],
    arguments: Callable[[int, Path], list[str]],
) -> Running:
    try:
        path, environment = program()
    except AssertionError as error:
        pytest.skip(str(error).partition("\n")[0])

    def command(port: int, folder: Path) -> list[str]:
        (folder / "edge.pem").write_bytes(_certificate())
        return [str(path), *arguments(port, folder)]

    return start(name, command, environment=environment, ready_path="/elsewhere", scheme="https")


def _nginx(port: int, folder: Path, inside: int) -> list[str]:
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(f"""
daemon off; master_process off; pid {folder}/pid; error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  access_log off; {temporary}
  map $http_upgrade $connection_upgrade {{ default upgrade; "" ""; }}
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/edge.pem; ssl_certificate_key {folder}/edge.pem;
    client_max_body_size 0; proxy_request_buffering off; proxy_buffering off;
    location {BELOW}/ {{
      proxy_pass http://127.0.0.1:{inside}/;
      proxy_bind {SOURCE};
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Prefix {BELOW};
    }}
  }}
}}
""")
    return ["-c", str(folder / "nginx.conf"), "-e", "stderr", "-p", str(folder)]


def _haproxy(port: int, folder: Path, inside: int) -> list[str]:
    (folder / "haproxy.cfg").write_text(f"""
global
  maxconn 256
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout tunnel 30s
  option forwardfor
frontend edge
  bind 127.0.0.1:{port} ssl crt {folder}/edge.pem alpn http/1.1
  http-request set-header X-Forwarded-Proto https
  http-request set-header X-Forwarded-Prefix {BELOW}
  http-request return status 404 unless {{ path_beg {BELOW}/ }}
  http-request replace-uri {BELOW}(/.*) \\1
  default_backend server
backend server
  source {SOURCE}
  server one 127.0.0.1:{inside}
""")
    return ["-db", "-f", str(folder / "haproxy.cfg")]


def _certificate() -> bytes:
    """With its key; of nobody whom a client would trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the edge of a test")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    return certificate.public_bytes(pem) + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
