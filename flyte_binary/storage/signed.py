"""Signed URLs that lead to this server itself: for stores whose host cannot sign, such as a disk.

`<origin>/_store/<path>?expires=<unix seconds>&md5=<hex>&sig=<hex>`, where `sig` is an HMAC-SHA256 over
verb, path, expiry and MD5. Whoever holds the URL may do that one thing until then. The key lies in the
data folder; servers that share the folder honour each other's URLs.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from flyte_binary.domain.errors import Internal, PermissionDenied
from flyte_binary.storage.store import Verb

PREFIX = "/_store"
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Grant:
    """What a valid signature allows."""

    path: str
    """Absolute, decoded."""
    md5: bytes | None
    """The content must have this MD5."""


class UrlSigner:
    def __init__(self, key: bytes) -> None:
        if len(key) < _KEY_BYTES:
            raise Internal(f"a key for signed URLs needs {_KEY_BYTES} bytes")
        self._key = key

    def url(self, origin: str, verb: Verb, path: str, *, expires_at: datetime, md5: bytes | None = None) -> str:
        """`path` is absolute and not encoded; `expires_at` counts in whole seconds, rounded down."""
        expires = str(int(expires_at.timestamp()))
        md5_hex = "" if md5 is None else md5.hex()
        checked = f"&md5={md5_hex}" if md5_hex else ""
        signature = self._signature(verb, path, expires, md5_hex)
        return f"{origin}{PREFIX}{quote(path, safe='/')}?expires={expires}{checked}&sig={signature}"

    def check(self, verb: Verb, path: str, query: Mapping[str, str], *, now: datetime) -> Grant:
        """Raises `PermissionDenied`, for an altered URL before an expired one.

        The words for an expired URL are those by which the SDK recognises it and tells its user to ask
        for a longer life.
        """
        expires, md5_hex = query.get("expires", ""), query.get("md5", "")
        expected = self._signature(verb, path, expires, md5_hex)
        if not hmac.compare_digest(expected, query.get("sig", "").encode("ascii", "replace").decode()):
            raise PermissionDenied(f"the signature does not fit this {verb.value}: the URL was altered")
        if int(expires) <= now.timestamp():
            raise PermissionDenied("Request has expired: ask for a new signed URL")
        return Grant(path, bytes.fromhex(md5_hex) or None)

    def _signature(self, verb: Verb, path: str, expires: str, md5_hex: str) -> str:
        text = "\n".join(["flyte-binary/1", verb.value, path, expires, md5_hex])
        return hmac.digest(self._key, text.encode("utf-8", "surrogateescape"), "sha256").hex()


def load_or_create_key(file: Path) -> bytes:
    """The key in `file`, readable by its owner only; made if it is not there.

    Servers that start at once agree: a key appears under its name whole and is never replaced. Raises
    `Internal` if the file is too short.
    """
    with contextlib.suppress(FileNotFoundError):
        return _checked(file.read_bytes(), file)
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(secrets.token_bytes(_KEY_BYTES))
        opened.flush()
        os.fsync(opened.fileno())
    try:
        file.hardlink_to(draft)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links: there the last of several starts wins
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    return _checked(file.read_bytes(), file)


def _checked(key: bytes, file: Path) -> bytes:
    if len(key) < _KEY_BYTES:
        raise Internal(f"{file} holds {len(key)} bytes, a key has {_KEY_BYTES}: remove the file to get a new one")
    return key
