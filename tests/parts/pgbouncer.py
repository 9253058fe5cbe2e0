"""PgBouncer in front of a PostgreSQL of the tests; from Debian's package, which is installed if it is missing."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres_server import PASSWORD, USER, PostgresServer, account, free_port

START_SECONDS = 20.0


def program() -> str:
    found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 300}
        subprocess.run(["apt-get", "update", "-qq"], check=False, **quiet)
        # Debian starts it; the tests want only the program.
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "pgbouncer"]
        environment = {**os.environ, "RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(install, check=True, env=environment, **quiet)
        found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert found is not None, "PgBouncer is missing: sudo apt-get install pgbouncer"
    return found


@contextmanager
def pgbouncer(postgres: PostgresServer, mode: str, *, certificate: Path | None = None) -> Generator[str]:
    """The URL of the database `postgres` behind it. With a certificate (its key beside it) it wants TLS, which the
    PostgreSQL of the tests is built without."""
    folder = Path(postgres.folder) / "pgbouncer"
    folder.mkdir(mode=0o755)
    tls = ""
    if certificate is not None:
        key = certificate.with_suffix(".key")
        tls = f"client_tls_sslmode = require\nclient_tls_cert_file = {certificate}\nclient_tls_key_file = {key}\n"
    port = free_port()
    (folder / "users").write_text(f'"{USER}" "{PASSWORD.replace(chr(34), chr(34) * 2)}"\n')
    (folder / "config").write_text(
        "[databases]\n"
        f"* = host=127.0.0.1 port={postgres.port}\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = scram-sha-256\nauth_file = {folder}/users\npool_mode = {mode}\n"
        f"ignore_startup_parameters = extra_float_digits\n{tls}"
    )
    log = (folder / "log").open("wb")
    process = subprocess.Popen([program(), str(folder / "config")], stdout=log, stderr=log, **account())
    try:
        _wait(process, port, folder / "log")
        yield postgres.url("postgres").replace(f":{postgres.port}/", f":{port}/")
    finally:
        process.terminate()
        process.wait(timeout=10)
        log.close()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")
        time.sleep(0.05)


def own_certificate(folder: Path) -> Path:
    """Of `localhost`, signed by itself; readable for whoever PgBouncer runs as."""
    certificate, key = folder / "front.crt", folder / "front.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    for path in (certificate, key):
        path.chmod(0o644)
    return certificate
