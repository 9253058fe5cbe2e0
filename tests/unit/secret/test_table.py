"""The encrypted table: what is on the disk, and what happens without the right key."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path

import pytest

from flyte_binary.db.database import Database
from flyte_binary.db.secrets import SecretRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.domain.errors import AlreadyExists, FailedPrecondition
from flyte_binary.domain.secrets import SecretId, SecretScope
from flyte_binary.secret.keys import KeyFile
from flyte_binary.secret.table import TableVault
from flyte_binary.secret.vault import SecretContent
from tests.fakes.manual_clock import ManualClock

ORGANIZATION = SecretScope()
TOKEN = SecretId(ORGANIZATION, "token")
OTHER = SecretId(ORGANIZATION, "other")


def content(value: bytes) -> SecretContent:
    return SecretContent(value=value, type=0)


def move(source: Path, target: Path) -> Path:
    return source.rename(target)


async def row_of(database: Database, secret: SecretId) -> SecretRow:
    row = await database.read(lambda tx: tx.secrets.get(secret))
    assert row is not None
    return row


async def test_the_database_has_no_value_and_nothing_else_tells_one(database: Database, vault: TableVault) -> None:
    await vault.create(TOKEN, content(b"a value"))

    row = await row_of(database, TOKEN)
    assert b"a value" not in row.ciphertext
    assert "a value" not in repr(content(b"a value"))
    assert await vault.reveal(["token"], [ORGANIZATION]) == {TOKEN: b"a value"}


async def test_no_key_is_made_before_there_is_a_secret(vault: TableVault, key_path: Path) -> None:
    await vault.check()
    assert await vault.reveal(["token"], [ORGANIZATION]) == {}
    assert KeyFile(key_path).current() is None


async def test_of_two_that_create_at_once_one_wins(vault: TableVault) -> None:
    results = await asyncio.gather(
        *(vault.create(TOKEN, content(value)) for value in (b"1", b"2", b"3")), return_exceptions=True
    )
    assert sorted(type(result).__name__ for result in results) == ["AlreadyExists", "AlreadyExists", "NoneType"]
    won = [value for value, result in zip((b"1", b"2", b"3"), results, strict=True) if result is None]
    assert [*(await vault.reveal(["token"], [ORGANIZATION])).values()] == won


async def test_a_value_put_under_another_name_in_the_database_is_not_given_out(
    database: Database, vault: TableVault
) -> None:
    await vault.create(TOKEN, content(b"a value"))
    await vault.create(OTHER, content(b"another"))
    stolen, target = await row_of(database, TOKEN), await row_of(database, OTHER)

    def swap(tx: Transaction) -> bool:
        return tx.secrets.encrypt_again(target, stolen)

    assert await database.write(swap)
    with pytest.raises(FailedPrecondition, match="secret other of the organization was damaged or moved"):
        await vault.reveal(["other"], [ORGANIZATION])


async def test_without_the_key_file_nothing_is_encrypted_with_a_new_key(
    database: Database, vault: TableVault, key_path: Path
) -> None:
    await vault.create(TOKEN, content(b"a value"))
    before = await row_of(database, TOKEN)
    kept = move(key_path, key_path.with_suffix(".away"))

    for use in (
        functools.partial(vault.create, OTHER, content(b"x")),
        functools.partial(vault.update, TOKEN, content(b"x")),
        functools.partial(vault.reveal, ["token"], [ORGANIZATION]),
    ):
        with pytest.raises(FailedPrecondition, match="put it back from a backup"):
            await use()
    with pytest.raises(FailedPrecondition, match=f"key {before.key_id}, which is not in .*secrets.key"):
        await vault.check()

    assert KeyFile(key_path).current() is None
    assert await row_of(database, TOKEN) == before
    move(kept, key_path)
    await vault.check()
    assert await vault.reveal(["token"], [ORGANIZATION]) == {TOKEN: b"a value"}


async def test_a_wrong_key_file_is_recognised_and_destroys_nothing(
    database: Database, vault: TableVault, tmp_path: Path
) -> None:
    await vault.create(TOKEN, content(b"a value"))
    wrong = TableVault(database, wrong_keys := KeyFile(tmp_path / "wrong.key"), ManualClock())
    wrong_keys.first()

    with pytest.raises(FailedPrecondition, match=r"1 secret .* Nothing was changed"):
        await wrong.check()
    with pytest.raises(FailedPrecondition, match="put that key back"):
        await wrong.reveal(["token"], [ORGANIZATION])
    with pytest.raises(AlreadyExists):
        await wrong.create(TOKEN, content(b"x"))
    assert await vault.reveal(["token"], [ORGANIZATION]) == {TOKEN: b"a value"}
