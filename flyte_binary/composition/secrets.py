"""The vault that the configuration means, and the command that gives it a new key."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from flyte_binary.composition.databases import open_database
from flyte_binary.config.model import Config
from flyte_binary.control.clock import SystemClock
from flyte_binary.db.database import Database
from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.live.hub import Hub
from flyte_binary.secret.keys import GivenKeys, KeyFile, Keys
from flyte_binary.secret.rotation import Rotated, rotate
from flyte_binary.secret.table import TableVault


async def open_vault(config: Config, database: Database) -> TableVault:
    """Raises `FailedPrecondition` if there are secrets that the keys at hand do not open."""
    vault = TableVault(database, make_keys(config), SystemClock())
    await vault.check()
    return vault


def make_keys(config: Config) -> Keys:
    """Raises `FailedPrecondition` for keys that are none."""
    if config.secret.keys and config.secret.key_file is not None:
        raise FailedPrecondition("secret.keys and secret.keyFile are both set: the keys come from one of them")
    if config.secret.keys:
        return GivenKeys(config.secret.keys)
    return KeyFile(config.secret.key_file or config.data_dir / "secrets.key")


def rotate_key(config: Config) -> str:
    """A sentence for people about what was done. Raises `FlyteError`, and then every secret can be read as before."""
    return asyncio.run(_rotate_key(config))


async def _rotate_key(config: Config) -> str:
    keys = make_keys(config)
    async with AsyncExitStack() as stack:
        database = await open_database(config, Hub(), stack)
        await TableVault(database, keys, SystemClock()).check()
        return _told(await rotate(database, keys), keys)


def _told(done: Rotated, keys: Keys) -> str:
    what = f"Encrypted again: {done.count} secrets, with the key {done.key_id}, the last one in {keys.source}."
    if not done.is_new and isinstance(keys, GivenKeys):
        return f"{what} For another key, put it there behind the others and call this again."
    if not done.is_new:
        return f"{what} This finished an earlier rotation; call it again for a new key."
    return f"{what} The keys above it still open older backups of the database."
