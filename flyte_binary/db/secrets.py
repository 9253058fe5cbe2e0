"""The `secrets` table: ciphertexts by scope and name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any  # column values of one row have many types

from sqlalchemy import Connection, and_, bindparam, delete, func, or_, select, tuple_, update

from flyte_binary.db.dialect import insert_if_absent
from flyte_binary.db.prepared import Prepared
from flyte_binary.db.tables import secrets
from flyte_binary.domain.secrets import SecretId, SecretScope

_SAME = and_(secrets.c.domain == bindparam("d"), secrets.c.project == bindparam("p"), secrets.c.name == bindparam("n"))
_COLUMNS = (
    secrets.c.domain,
    secrets.c.project,
    secrets.c.name,
    secrets.c.type,
    secrets.c.key_id,
    secrets.c.nonce,
    secrets.c.ciphertext,
    secrets.c.created_at,
    secrets.c.updated_at,
)
_ONE = Prepared(select(*_COLUMNS).where(_SAME))
_ORDER = (secrets.c.domain, secrets.c.project, secrets.c.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRow:
    id: SecretId
    type: int
    """`SecretType` of the contract."""
    key_id: str
    nonce: bytes
    ciphertext: bytes
    created_at: int
    updated_at: int


class Secrets:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, secret: SecretId) -> SecretRow | None:
        record = _ONE.first(self._connection, _key(secret))
        return None if record is None else _row(record)

    def insert(self, row: SecretRow) -> bool:
        """False if there is a secret of that name in that scope."""
        values: dict[str, Any] = {**_place(row.id), **_content(row), "created_at": row.created_at}  # any: column values
        return insert_if_absent(self._connection, secrets, values)

    def replace(self, row: SecretRow) -> bool:
        """Everything but the time of its creation; False if there is no such secret."""
        statement = update(secrets).where(_SAME).values(**_content(row))
        return self._connection.execute(statement, _key(row.id)).rowcount > 0

    def encrypt_again(self, before: SecretRow, after: SecretRow) -> bool:
        """Put the same secret under another key; False if somebody changed or deleted it meanwhile."""
        statement = update(secrets).where(_SAME, secrets.c.nonce == before.nonce)
        content = {"key_id": after.key_id, "nonce": after.nonce, "ciphertext": after.ciphertext}
        return self._connection.execute(statement.values(**content), _key(before.id)).rowcount > 0

    def delete(self, secret: SecretId) -> bool:
        return self._connection.execute(delete(secrets).where(_SAME), _key(secret)).rowcount > 0

    def find(self, names: Collection[str], scopes: Collection[SecretScope]) -> list[SecretRow]:
        """All secrets of these names in these scopes, in no order."""
        places = [and_(secrets.c.domain == scope.domain, secrets.c.project == scope.project) for scope in scopes]
        statement = select(*_COLUMNS).where(secrets.c.name.in_(list(names)), or_(*places))
        return [_row(record) for record in self._connection.execute(statement)]

    def list(self, scope: SecretScope, *, after: SecretId | None, limit: int) -> list[SecretRow]:
        """Those of the scope and of the scopes in it: of everything, of a domain, or of one project in a domain; by
        domain, project and name."""
        statement = select(*_COLUMNS).order_by(*_ORDER).limit(limit)
        if scope.domain:
            statement = statement.where(secrets.c.domain == scope.domain)
        if scope.project:
            statement = statement.where(secrets.c.project == scope.project)
        if after is not None:
            statement = statement.where(tuple_(*_ORDER) > (after.scope.domain, after.scope.project, after.name))
        return [_row(record) for record in self._connection.execute(statement)]

    def key_ids(self) -> dict[str, int]:
        """Under which keys secrets are encrypted, and how many under each."""
        statement = select(secrets.c.key_id, func.count()).group_by(secrets.c.key_id)
        return {key_id: count for key_id, count in self._connection.execute(statement)}

    def under_other_keys(self, key_id: str, *, limit: int) -> list[SecretRow]:
        """Some that are encrypted with another key than this."""
        statement = select(*_COLUMNS).where(secrets.c.key_id != key_id).order_by(*_ORDER).limit(limit)
        return [_row(record) for record in self._connection.execute(statement)]


def _key(secret: SecretId) -> dict[str, str]:
    return {"d": secret.scope.domain, "p": secret.scope.project, "n": secret.name}


def _place(secret: SecretId) -> dict[str, str]:
    return {"domain": secret.scope.domain, "project": secret.scope.project, "name": secret.name}


def _content(row: SecretRow) -> dict[str, Any]:  # any: column values
    return {
        "type": row.type,
        "key_id": row.key_id,
        "nonce": row.nonce,
        "ciphertext": row.ciphertext,
        "updated_at": row.updated_at,
    }


def _row(record: Sequence[Any]) -> SecretRow:  # any: column values
    domain, project, name, kind, key_id, nonce, ciphertext, created_at, updated_at = record
    return SecretRow(
        id=SecretId(SecretScope(domain, project), name),
        type=kind,
        key_id=key_id,
        nonce=nonce,
        ciphertext=ciphertext,
        created_at=created_at,
        updated_at=updated_at,
    )
