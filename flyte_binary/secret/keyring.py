"""The keys of the encrypted table, and how a value is sealed: AES-256-GCM with a random nonce for every encryption.

The scope and the name of the secret are part of what is authenticated, so that nobody who can write to the database
gives one secret the value of another. A key is known by its id, which is made from the key: a wrong key file is
recognised before anything is decrypted.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.domain.secrets import SecretId

KEY_BYTES = 32
_NONCE_BYTES = 12
_PURPOSE = "flyte-binary/secret/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    key_id: str
    nonce: bytes
    ciphertext: bytes


@dataclass(frozen=True, slots=True)
class Key:
    material: bytes = field(repr=False)

    @property
    def id(self) -> str:
        return hmac.digest(self.material, f"{_PURPOSE}/key-id".encode(), "sha256").hex()[:16]


class Keyring:
    """Opens with any of its keys, seals with the newest."""

    def __init__(self, keys: Sequence[Key], source: str) -> None:
        """`keys` begin with the oldest; `source` names where they come from, for errors."""
        self._keys = {key.id: AESGCM(key.material) for key in keys}
        self.newest = keys[-1].id
        self.source = source

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._keys

    def seal(self, secret: SecretId, value: bytes) -> Sealed:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        ciphertext = self._keys[self.newest].encrypt(nonce, value, _associated(secret, self.newest))
        return Sealed(key_id=self.newest, nonce=nonce, ciphertext=ciphertext)

    def open(self, secret: SecretId, sealed: Sealed) -> bytes:
        """Raises `FailedPrecondition` without the key, and for a row that was changed or moved."""
        key = self._keys.get(sealed.key_id)
        if key is None:
            raise FailedPrecondition(
                f"the secret {secret.name} of {secret.scope} is encrypted with the key {sealed.key_id}, which is not "
                f"in {self.source}: put that key back"
            )
        try:
            return key.decrypt(sealed.nonce, sealed.ciphertext, _associated(secret, sealed.key_id))
        except (InvalidTag, ValueError):
            raise FailedPrecondition(
                f"the secret {secret.name} of {secret.scope} was damaged or moved in the database: set its value again"
            ) from None


def new_key() -> Key:
    return Key(secrets.token_bytes(KEY_BYTES))


def key_from_text(text: str, where: str) -> Key:
    """Raises `FailedPrecondition`, which names `where` and shows nothing of the text."""
    try:
        material = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        material = b""
    if len(material) != KEY_BYTES:
        raise FailedPrecondition(f"{where} is no key for secrets: expected {KEY_BYTES} bytes in base64")
    return Key(material)


def key_to_text(key: Key) -> str:
    return base64.b64encode(key.material).decode()


def _associated(secret: SecretId, key_id: str) -> bytes:
    return json.dumps([_PURPOSE, key_id, secret.scope.domain, secret.scope.project, secret.name]).encode()
