"""The vault that is a table of encrypted rows: what a server without Kubernetes has."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from flyte_binary.control.clock import Clock
from flyte_binary.db.database import Database
from flyte_binary.db.secrets import SecretRow
from flyte_binary.domain.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from flyte_binary.domain.secrets import SecretId, SecretScope
from flyte_binary.rpc.paging import TokenKey, keys_from_token, make_token
from flyte_binary.secret.keyring import Keyring, Sealed
from flyte_binary.secret.keys import Keys
from flyte_binary.secret.vault import SecretContent, SecretPage, StoredSecret


class TableVault:
    def __init__(self, database: Database, keys: Keys, clock: Clock) -> None:
        self._database = database
        self._keys = keys
        self._clock = clock

    async def check(self) -> None:
        """Raises `FailedPrecondition` if there are secrets that the keys at hand do not open."""
        used = await self._database.read(lambda tx: tx.secrets.key_ids())
        keyring = self._keys.current()
        lost = {key_id: count for key_id, count in used.items() if keyring is None or key_id not in keyring}
        if lost:
            raise FailedPrecondition(
                f"the database has {_counted(sum(lost.values()))} encrypted with the key {', '.join(sorted(lost))}, "
                f"which is not in {self._keys.source}: put it back from a backup, or name the right file by "
                "secret.keyFile. Nothing was changed"
            )

    async def create(self, secret: SecretId, content: SecretContent) -> None:
        row = self._row(secret, content, await self._to_seal())
        if not await self._database.write(lambda tx: tx.secrets.insert(row)):
            raise AlreadyExists(f"secret {secret.name} already exists in {secret.scope}")

    async def update(self, secret: SecretId, content: SecretContent) -> None:
        row = self._row(secret, content, await self._to_seal())
        if not await self._database.write(lambda tx: tx.secrets.replace(row)):
            raise not_found(secret)

    async def find(self, secret: SecretId) -> StoredSecret | None:
        row = await self._database.point(lambda tx: tx.secrets.get(secret))
        return None if row is None else _stored(row)

    async def delete(self, secret: SecretId) -> None:
        if not await self._database.write(lambda tx: tx.secrets.delete(secret)):
            raise not_found(secret)

    async def list(self, scope: SecretScope, *, token: str, limit: int) -> SecretPage:
        listing = f"secrets:{scope.domain}:{scope.project}"
        keys = keys_from_token(token, listing, 3, "token")
        after = None if keys is None else _position(keys)
        rows = await self._database.read(lambda tx: tx.secrets.list(scope, after=after, limit=limit + 1))
        shown = [_stored(row) for row in rows[:limit]]
        if len(rows) <= limit:
            return SecretPage(secrets=shown)
        last = shown[-1].id
        return SecretPage(secrets=shown, token=make_token(listing, [last.scope.domain, last.scope.project, last.name]))

    async def reveal(self, names: Collection[str], scopes: Collection[SecretScope]) -> Mapping[SecretId, bytes]:
        rows = await self._database.read(lambda tx: tx.secrets.find(names, scopes))
        if not rows:
            return {}
        keyring = self._keys.current()
        if keyring is None:
            raise self._without_keys(len(rows))
        return {row.id: keyring.open(row.id, sealed_of(row)) for row in rows}

    async def _to_seal(self) -> Keyring:
        """Makes the first key only where nothing was ever encrypted with another."""
        keyring = self._keys.current()
        if keyring is not None:
            return keyring
        used = await self._database.read(lambda tx: tx.secrets.key_ids())
        if used:
            raise self._without_keys(sum(used.values()))
        return self._keys.first()

    def _without_keys(self, count: int) -> FailedPrecondition:
        return FailedPrecondition(
            f"{self._keys.source} is gone, and with it the key of {_counted(count)}: put it back from a backup"
        )

    def _row(self, secret: SecretId, content: SecretContent, keyring: Keyring) -> SecretRow:
        sealed, now = keyring.seal(secret, content.value), self._clock.now()
        return SecretRow(
            id=secret,
            type=content.type,
            key_id=sealed.key_id,
            nonce=sealed.nonce,
            ciphertext=sealed.ciphertext,
            created_at=now,
            updated_at=now,
        )


def not_found(secret: SecretId) -> NotFound:
    """In the reference backend's words."""
    return NotFound(f"secret {secret.name} not found")


def _counted(count: int) -> str:
    return "1 secret" if count == 1 else f"{count} secrets"


def sealed_of(row: SecretRow) -> Sealed:
    return Sealed(key_id=row.key_id, nonce=row.nonce, ciphertext=row.ciphertext)


def _stored(row: SecretRow) -> StoredSecret:
    return StoredSecret(id=row.id, type=row.type, created_at=row.created_at)


def _position(keys: tuple[TokenKey, ...]) -> SecretId:
    domain, project, name = keys
    if not (isinstance(domain, str) and isinstance(project, str) and isinstance(name, str)):
        raise InvalidArgument("token is not one that this server made; send the one of the last page, or none")
    if any("\0" in part for part in (domain, project, name)):
        raise InvalidArgument("token must not contain the NUL character")
    return SecretId(SecretScope(domain, project), name)
