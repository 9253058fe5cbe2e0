"""A new key for all secrets: `flyte-binary secrets rotate-key`, also while servers work on the same database.

The new key is on the disk before the first row needs it, each row is replaced only in the state that was read, and
the old keys stay. So whatever is killed in between leaves every secret readable, and the next call goes on there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flyte_binary.db.database import Database
from flyte_binary.db.secrets import SecretRow
from flyte_binary.db.transaction import Transaction
from flyte_binary.secret.keyring import Keyring
from flyte_binary.secret.keys import Keys
from flyte_binary.secret.table import sealed_of

_BATCH = 100
"""Rows of one write; few, so that servers get their turn between two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    key_id: str
    count: int
    """Secrets that were encrypted again."""
    is_new: bool
    """False where an earlier rotation was finished, or the keys are given by the configuration."""


async def rotate(database: Database, keys: Keys, *, batch: int = _BATCH) -> Rotated:
    """Raises `FailedPrecondition` if a secret cannot be decrypted; it keeps its row and its key."""
    used = await database.read(lambda tx: tx.secrets.key_ids())
    keyring = keys.current()
    begun = keyring is not None and any(key_id != keyring.newest for key_id in used)
    added = None if begun else keys.add()
    keyring = added or keyring or keys.first()
    count = 0
    while rows := await _behind(database, keyring, batch):
        # Another rotation may have begun meanwhile: both go for the newest key, and know both.
        keyring = keys.current() or keyring
        behind = [row for row in rows if row.key_id != keyring.newest]
        count += await _encrypt_again(database, keyring, behind)
    return Rotated(key_id=keyring.newest, count=count, is_new=added is not None)


async def _behind(database: Database, keyring: Keyring, batch: int) -> list[SecretRow]:
    return await database.read(lambda tx: tx.secrets.under_other_keys(keyring.newest, limit=batch))


async def _encrypt_again(database: Database, keyring: Keyring, rows: list[SecretRow]) -> int:
    """How many; one that was changed meanwhile is found again if it still has another key."""
    pairs = [(row, _resealed(row, keyring)) for row in rows]

    def operation(tx: Transaction) -> int:
        return sum(tx.secrets.encrypt_again(before, after) for before, after in pairs)

    return await database.write(operation)


def _resealed(row: SecretRow, keyring: Keyring) -> SecretRow:
    sealed = keyring.seal(row.id, keyring.open(row.id, sealed_of(row)))
    return replace(row, key_id=sealed.key_id, nonce=sealed.nonce, ciphertext=sealed.ciphertext)
