"""A new key for all secrets, beside servers that work, and after a kill at any moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyte_binary.db.database import Database, Operation, T
from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.domain.ids import RunId
from flyte_binary.domain.secrets import SecretId, SecretScope
from flyte_binary.secret.keyring import key_to_text, new_key
from flyte_binary.secret.keys import GivenKeys, KeyFile
from flyte_binary.secret.rotation import rotate
from flyte_binary.secret.table import TableVault
from flyte_binary.secret.vault import SecretContent
from tests.fakes.manual_clock import ManualClock

ORGANIZATION = SecretScope()
NAMES = [f"s{n}" for n in range(7)]


class KilledError(BaseException):
    """As if the process had been."""


class Dying:
    """A database whose user is killed before its write number `last`, which counts from one, or right after it."""

    def __init__(self, database: Database, last: int, *, committed: bool) -> None:
        self._database = database
        self._left = last
        self._committed = committed

    async def write(self, operation: Operation[T], *, run: RunId | None = None) -> T:
        self._left -= 1
        if self._left == 0:
            if self._committed:
                await self._database.write(operation, run=run)
            raise KilledError
        return await self._database.write(operation, run=run)

    async def read(self, operation: Operation[T]) -> T:
        return await self._database.read(operation)

    async def point(self, operation: Operation[T]) -> T:
        return await self._database.point(operation)

    async def ping(self) -> None:
        await self._database.ping()

    async def close(self) -> None:
        await self._database.close()


def content(value: str) -> SecretContent:
    return SecretContent(value=value.encode(), type=0)


async def fill(vault: TableVault) -> None:
    for name in NAMES:
        await vault.create(SecretId(ORGANIZATION, name), content(f"value of {name}"))


async def all_readable(vault: TableVault) -> bool:
    found = await vault.reveal(NAMES, [ORGANIZATION])
    return found == {SecretId(ORGANIZATION, name): f"value of {name}".encode() for name in NAMES}


async def key_ids(database: Database) -> dict[str, int]:
    return await database.read(lambda tx: tx.secrets.key_ids())


async def test_all_secrets_are_encrypted_again_and_a_running_server_reads_them(
    database: Database, vault: TableVault, key_path: Path
) -> None:
    await fill(vault)
    (before,) = await key_ids(database)
    done = await rotate(database, KeyFile(key_path), batch=3)

    assert (done.count, done.is_new) == (7, True)
    assert await key_ids(database) == {done.key_id: 7}
    assert done.key_id != before
    assert await all_readable(vault)
    await vault.update(SecretId(ORGANIZATION, "s0"), content("later"))
    assert await key_ids(database) == {done.key_id: 7}


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("last", [1, 2, 3])
async def test_after_a_kill_at_any_batch_all_is_readable_and_the_next_call_goes_on(
    database: Database, vault: TableVault, key_path: Path, last: int, committed: bool
) -> None:
    await fill(vault)
    with pytest.raises(KilledError):
        await rotate(Dying(database, last, committed=committed), KeyFile(key_path), batch=3)
    restarted = TableVault(database, KeyFile(key_path), ManualClock())
    await restarted.check()
    assert await all_readable(restarted)

    keys = KeyFile(key_path).current()
    done = await rotate(database, KeyFile(key_path), batch=3)
    assert keys is not None
    left = {1: 7, 2: 4, 3: 1}[last] - (3 if last < 3 else 1) * committed
    assert (done.count, done.is_new) == (left or len(NAMES), left == 0)
    if left:
        assert done.key_id == keys.newest, "no further key was made"
    assert len(await key_ids(database)) == 1
    assert await all_readable(restarted)


@pytest.mark.parametrize("at", [1, 2, 3])
async def test_two_rotations_at_once_end_under_one_key(
    database: Database, vault: TableVault, key_path: Path, at: int
) -> None:
    """A second one is called, and ends, before a batch of the first is written."""
    await fill(vault)

    class Overtaken(Dying):
        async def write(self, operation: Operation[T], *, run: RunId | None = None) -> T:
            self._left -= 1
            if self._left == 0:
                KeyFile(key_path).add()
                await rotate(self._database, KeyFile(key_path), batch=2)
            return await self._database.write(operation, run=run)

    await rotate(Overtaken(database, at, committed=True), KeyFile(key_path), batch=3)

    newest = KeyFile(key_path).current()
    assert newest is not None
    assert set(await key_ids(database)) == {newest.newest}
    assert await all_readable(vault)


async def test_a_value_that_is_set_meanwhile_is_not_overwritten(
    database: Database, vault: TableVault, key_path: Path
) -> None:
    """Between the read of a batch and its write a server updates one secret, deletes another and adds a third."""
    await fill(vault)

    class Raced(Dying):
        async def write(self, operation: Operation[T], *, run: RunId | None = None) -> T:
            if self._left == 0:
                self._left = -1
                await vault.update(SecretId(ORGANIZATION, "s0"), content("new"))
                await vault.delete(SecretId(ORGANIZATION, "s1"))
                await vault.create(SecretId(ORGANIZATION, "s9"), content("added"))
            return await self._database.write(operation, run=run)

    await rotate(Raced(database, 0, committed=False), KeyFile(key_path))

    found = await vault.reveal(["s0", "s1", "s2", "s9"], [ORGANIZATION])
    assert {secret.name: value for secret, value in found.items()} == {
        "s0": b"new",
        "s2": b"value of s2",
        "s9": b"added",
    }
    assert len(await key_ids(database)) == 1


async def test_a_secret_that_cannot_be_decrypted_stops_the_rotation_and_stays(
    database: Database, vault: TableVault, key_path: Path
) -> None:
    await fill(vault)
    row = await database.read(lambda tx: tx.secrets.get(SecretId(ORGANIZATION, "s0")))
    other = await database.read(lambda tx: tx.secrets.get(SecretId(ORGANIZATION, "s1")))
    assert row is not None and other is not None
    await database.write(lambda tx: tx.secrets.encrypt_again(row, other))

    with pytest.raises(FailedPrecondition, match="the secret s0"):
        await rotate(database, KeyFile(key_path))
    found = await vault.reveal(NAMES[1:], [ORGANIZATION])
    assert len(found) == 6
    damaged = await database.read(lambda tx: tx.secrets.get(SecretId(ORGANIZATION, "s0")))
    assert damaged is not None and damaged.ciphertext == other.ciphertext


async def test_keys_of_the_configuration_are_rotated_by_a_further_one_there(database: Database) -> None:
    old, new = key_to_text(new_key()), key_to_text(new_key())
    await fill(TableVault(database, GivenKeys([old]), ManualClock()))

    assert (await rotate(database, GivenKeys([old]))).count == 0
    done = await rotate(database, GivenKeys([old, new]))
    assert (done.count, done.is_new) == (7, False)
    assert await all_readable(TableVault(database, GivenKeys([new]), ManualClock()))


async def test_the_first_key_is_made_where_there_is_none(database: Database, key_path: Path) -> None:
    done = await rotate(database, KeyFile(key_path))
    assert (done.count, done.is_new) == (0, True)
    assert KeyFile(key_path).current() is not None
