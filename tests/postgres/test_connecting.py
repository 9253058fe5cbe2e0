"""How the database is named in the configuration, and what is said when it cannot be had."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from flyte_binary.composition.databases import address_of, migrate, migrate_postgres, schema_of, uses_postgres
from flyte_binary.config.model import Config, Database, Postgres, Runs
from flyte_binary.db.migrate import HEAD
from flyte_binary.db.postgres.channel import PostgresChannel
from flyte_binary.db.postgres.connect import Address, connect
from flyte_binary.domain.errors import FailedPrecondition, FlyteError, InvalidArgument, Unavailable
from tests.parts.pgbouncer import own_certificate, pgbouncer
from tests.postgres_server import PASSWORD, USER, PostgresServer
from tests.sdk.serving import free_port


async def who(address: Address) -> str:
    connection = await connect(address)
    try:
        return await connection.fetchval("SELECT current_user || '@' || current_database()")
    finally:
        await connection.close()


def settings(postgres: PostgresServer, **more: object) -> Postgres:
    values = {"host": "127.0.0.1", "port": postgres.port, "username": USER, "password": PASSWORD, "dbname": "postgres"}
    return Postgres(**{**values, **more})  # pyright: ignore[reportArgumentType]  # as the test says


async def test_a_password_of_special_characters(postgres: PostgresServer) -> None:
    assert await who(address_of(settings(postgres))) == f"{USER}@postgres"


async def test_a_unix_socket(postgres: PostgresServer) -> None:
    assert await who(address_of(settings(postgres, host=str(postgres.folder)))) == f"{USER}@postgres"
    base = postgres.url("postgres").replace(f"127.0.0.1:{postgres.port}", "")
    url = f"{base}?host={postgres.folder}&port={postgres.port}"
    assert await who(address_of(Postgres(url=url))) == f"{USER}@postgres"


async def test_several_hosts_of_which_one_is_down(postgres: PostgresServer) -> None:
    url = postgres.url("postgres").replace("@127.0.0.1", f"@127.0.0.1:{free_port()},127.0.0.1")

    assert await who(address_of(Postgres(url=url))) == f"{USER}@postgres"


async def test_a_password_from_a_file_that_is_replaced(postgres: PostgresServer, tmp_path: Path) -> None:
    file = tmp_path / "password"
    address = address_of(settings(postgres, password="", password_path=file))
    with pytest.raises(Unavailable, match="passwordPath"):
        await who(address)
    file.write_text(f"{PASSWORD}\n")
    assert await who(address) == f"{USER}@postgres"


async def test_a_password_from_a_command(postgres: PostgresServer, tmp_path: Path) -> None:
    script = tmp_path / "token"
    script.write_text(f"import sys; sys.stdout.write({PASSWORD!r})")
    address = address_of(settings(postgres, password="", password_command=(sys.executable, str(script))))
    assert await who(address) == f"{USER}@postgres"

    script.write_text("import sys; sys.exit('no token today')")
    with pytest.raises(Unavailable, match="no token today"):
        await who(address)


async def test_tls_with_a_certificate_that_is_checked(postgres: PostgresServer) -> None:
    certificate = own_certificate(postgres.folder)
    with pgbouncer(postgres, "session", certificate=certificate) as url:
        checked = f"{url.replace('127.0.0.1', 'localhost')}?sslmode=verify-full&sslrootcert={certificate}"
        assert await who(address_of(Postgres(url=checked))) == f"{USER}@postgres"

        (postgres.folder / "another").mkdir()
        another = own_certificate(postgres.folder / "another")
        with pytest.raises(Exception, match="certificate verify failed"):
            await who(address_of(Postgres(url=checked.replace(str(certificate), str(another)))))
        with pytest.raises(Exception, match="SSL required"):
            await who(address_of(Postgres(url=f"{url}?sslmode=disable")))


async def test_notifications_come_through_a_pooler_in_session_mode(postgres: PostgresServer) -> None:
    with pgbouncer(postgres, "session") as url:
        channel = PostgresChannel(Address(url=url))
        heard: asyncio.Queue[str] = asyncio.Queue()
        await channel.open(heard.put_nowait)
        await channel.send(["hello"])
        assert await asyncio.wait_for(heard.get(), 10) == "hello"
        await channel.close()


def test_an_option_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="'sslmode' is no option"):
        address_of(Postgres(host="h", options="sslmode"))


async def test_a_database_that_is_not_there_is_made(postgres: PostgresServer) -> None:
    address = address_of(settings(postgres, dbname='odd "name'))

    assert await migrate_postgres(address) is None
    assert await migrate_postgres(address) == HEAD


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"password": "wrong"}, FailedPrecondition, "password authentication failed"),
        ({"username": "nobody"}, FailedPrecondition, "password authentication failed"),
        ({"port": 1}, Unavailable, "no connection to PostgreSQL at postgresql://flyte@127.0.0.1:1/postgres"),
    ],
)
async def test_what_is_wrong_is_said_without_the_password(
    postgres: PostgresServer, change: Mapping[str, object], error: type[FlyteError], words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        await migrate_postgres(address_of(settings(postgres, **change)))

    assert PASSWORD not in str(raised.value) and "wrong" not in str(raised.value)


def test_a_user_without_rights_is_told_to_make_the_database(postgres: PostgresServer) -> None:
    config = Config(runs=Runs(database=Database(postgres=settings(postgres, dbname="flyte"))))
    assert uses_postgres(config)
    postgres.sql("CREATE ROLE plain LOGIN PASSWORD 'x'")
    plain = settings(postgres, dbname="flyte", username="plain", password="x")

    with pytest.raises(FailedPrecondition, match="may not create it"):
        migrate(Config(runs=Runs(database=Database(postgres=plain))))


def test_five_servers_start_at_once_on_an_empty_database(postgres: PostgresServer, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flyte_binary", "migrate", "--data-dir", str(tmp_path)]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "FLYTE_BINARY__RUNS__DATABASE__POSTGRES__URL": postgres.url("fresh"),
    }
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(5)
    ]
    said = [process.communicate(timeout=60)[0] for process in started]

    assert [process.returncode for process in started] == [0] * 5, said
    assert sum(f"is now at schema revision {HEAD}" in text for text in said) >= 1


def test_a_pooler_in_transaction_mode_is_refused_with_a_sentence(postgres: PostgresServer, tmp_path: Path) -> None:
    with pgbouncer(postgres, "transaction") as url:
        done = _serve(url, tmp_path)

    assert done.returncode == 2
    assert "does not deliver notifications" in done.stderr
    assert "pooler in transaction mode" in done.stderr


def _serve(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flyte_binary", "--data-dir", str(folder), "--port", "0"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "FLYTE_BINARY__RUNS__DATABASE__POSTGRES__URL": url,
    }
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_whether_a_migration_is_needed_is_said_without_making_the_database(postgres: PostgresServer) -> None:
    config = Config(runs=Runs(database=Database(postgres=settings(postgres, dbname="to_be_checked"))))

    assert [schema_of(config)[1], schema_of(config)[1]] == [None, None]
    assert migrate(config)[1] is None, "it had not been made"
    assert schema_of(config)[1] == HEAD
