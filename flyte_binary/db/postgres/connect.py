"""How connections to PostgreSQL are made: the address, the password of the moment, and the engine over both.

The address is a libpq URL, as asyncpg reads it: several hosts, unix sockets, `sslmode` and certificates included.
Passwords are asked for anew with every connection, so that tokens of cloud accounts may expire and files be replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # asyncpg has no type annotations
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from flyte_binary.db.postgres.trouble import sqlstate
from flyte_binary.domain.errors import FailedPrecondition, Unavailable

CONNECT_SECONDS = 10.0
PASSWORD_SECONDS = 30.0
STATEMENTS = 512
"""Prepared statements that a connection keeps; all of ours fit."""

_CATALOG_MISSING = "3D000"
_EXISTS_ALREADY = "42P04"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the database is and who we are there."""

    url: str
    """`postgresql://user:password@host:port/name?sslmode=...`; special characters percent-encoded."""

    password_path: Path | None = None
    password_command: Sequence[str] = ()
    """Prints the password; run for every connection."""

    def shown(self) -> str:
        """Without the password, for logs and messages."""
        parts = urlsplit(self.url)
        user, at, hosts = parts.netloc.rpartition("@")
        user = user.partition(":")[0]
        query = urlencode([(key, value) for key, value in parse_qsl(parts.query) if key != "password"], safe="/:,")
        return urlunsplit((parts.scheme, f"{user}{at}{hosts}", parts.path, query, ""))

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.url).path.removeprefix("/"))

    def of_database(self, name: str) -> Address:
        """The same server and user, another database."""
        parts = urlsplit(self.url)
        url = urlunsplit((parts.scheme, parts.netloc, f"/{quote(name, safe='')}", parts.query, ""))
        return Address(url=url, password_path=self.password_path, password_command=self.password_command)

    async def password(self) -> str | None:
        """None: the one in the URL. Raises `Unavailable` with what the file or the command said."""
        if self.password_command:
            return await _said_by(self.password_command)
        if self.password_path is None:
            return None
        try:
            return (await asyncio.to_thread(self.password_path.read_text)).strip()
        except OSError as error:
            raise Unavailable(f"runs.database.postgres.passwordPath: {error}") from error


async def connect(address: Address, *, application: str = "flyte-binary") -> Any:  # Any: asyncpg has no types
    """A connection of asyncpg's. Raises what asyncpg raises, and `Unavailable` without a password."""
    driver: Any = asyncpg  # Any: as above
    return await driver.connect(
        address.url,
        password=await address.password(),
        timeout=CONNECT_SECONDS,
        statement_cache_size=STATEMENTS,
        server_settings={"application_name": application},
    )


def make_engine(address: Address) -> AsyncEngine:
    """In autocommit mode: transactions are begun by hand. Every `connect` is a new connection."""

    def create() -> Awaitable[Any]:  # Any: as above
        return connect(address)

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=create,
        isolation_level="AUTOCOMMIT",
        poolclass=NullPool,
        connect_args={"prepared_statement_cache_size": STATEMENTS},
    )


async def ensure_database(address: Address) -> None:
    """Create the database if the server has none of that name and lets us.

    Raises `FailedPrecondition` with a sentence for what a person has to mend, `Unavailable` for what may pass.
    """
    if not await database_exists(address):
        await _create(address)


async def database_exists(address: Address) -> bool:
    """Raises as `ensure_database` does."""
    try:
        await (await connect(address)).close()
    except asyncpg.InvalidCatalogNameError:
        return False
    except Exception as error:
        raise cannot_connect(address, error) from error
    return True


async def _create(address: Address) -> None:
    try:
        connection = await connect(address.of_database("postgres"))
    except Exception as error:
        raise FailedPrecondition(
            f"the database {address.name!r} does not exist, and it cannot be created: {error}. Create it by hand"
        ) from error
    try:
        escaped = address.name.replace('"', '""')
        await connection.execute(f'CREATE DATABASE "{escaped}"')
    except asyncpg.PostgresError as error:
        if sqlstate(error) != _EXISTS_ALREADY and not isinstance(error, asyncpg.UniqueViolationError):
            raise FailedPrecondition(
                f"the database {address.name!r} does not exist, and this user may not create it: {error}"
            ) from error
    finally:
        await connection.close()


def cannot_connect(address: Address, error: BaseException) -> FailedPrecondition | Unavailable:
    """A sentence about a connection that did not come about; wrong names and passwords do not pass by themselves."""
    text = f"no connection to PostgreSQL at {address.shown()}: {str(error) or type(error).__name__}"
    refused = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidPasswordError)
    mistaken = isinstance(error, (*refused, asyncpg.ClientConfigurationError, ValueError))
    return FailedPrecondition(text) if mistaken else Unavailable(text)


async def _said_by(command: Sequence[str]) -> str:
    where = "runs.database.postgres.passwordCommand"
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except OSError as error:
        raise Unavailable(f"{where}: {command[0]!r} cannot be run: {error}") from error
    try:
        async with asyncio.timeout(PASSWORD_SECONDS):
            said, complaints = await process.communicate()
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise Unavailable(f"{where}: {command[0]!r} did not end within {PASSWORD_SECONDS:g} s") from error
    if process.returncode != 0:
        complaint = complaints.decode(errors="replace").strip()[-500:]
        raise Unavailable(f"{where}: {command[0]!r} ended with {process.returncode}: {complaint}")
    return said.decode().strip()
