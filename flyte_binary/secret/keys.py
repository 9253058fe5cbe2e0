"""Where the keys come from: a file outside of the database, or the configuration.

The file has one key a line, in base64, the newest last; lines that begin with `#` are for people. It is a few hundred
bytes and read again when it has changed, so that a server goes on while the keys are rotated beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.secret.keyring import Key, Keyring, key_from_text, key_to_text, new_key

_HEADER = """\
# Keys of flyte-binary's secrets, one a line. The last one encrypts, the others are kept to decrypt.
# Without this file the secrets are lost: back it up, apart from the database.
"""


class Keys(Protocol):
    @property
    def source(self) -> str:
        """Names them in errors."""
        ...

    def current(self) -> Keyring | None:
        """None if there is no key yet. Raises `FailedPrecondition` for what cannot be read."""
        ...

    def first(self) -> Keyring:
        """Make the first key, or take that of whoever was faster."""
        ...

    def add(self) -> Keyring | None:
        """Make a newer key; None if that is for somebody else to do."""
        ...


class GivenKeys:
    """From the configuration; whoever wrote them there makes new ones."""

    source = "secret.keys"

    def __init__(self, texts: Sequence[str]) -> None:
        """Raises `FailedPrecondition`."""
        keys = [key_from_text(text.strip(), f"entry {n} of {self.source}") for n, text in enumerate(texts, start=1)]
        self._keyring = Keyring(keys, self.source)

    def current(self) -> Keyring | None:
        return self._keyring

    def first(self) -> Keyring:
        return self._keyring

    def add(self) -> Keyring | None:
        return None


class KeyFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[tuple[int, int, int], Keyring] | None = None

    @property
    def source(self) -> str:
        return str(self._path)

    def current(self) -> Keyring | None:
        try:
            status = self._path.stat()
            version = (status.st_ino, status.st_size, status.st_mtime_ns)
            if self._read is None or self._read[0] != version:
                self._read = (version, self._parsed(self._path.read_text(encoding="ascii")))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise FailedPrecondition(f"the keys of the secrets cannot be read from {self._path}: {error}") from error
        return self._read[1]

    def first(self) -> Keyring:
        with self._alone():
            keyring = self.current()
            if keyring is not None:
                return keyring
            self._replace(_HEADER + _line(new_key()))
        return self._existing()

    def add(self) -> Keyring:
        with self._alone():
            try:
                text = self._path.read_text(encoding="ascii")
            except FileNotFoundError:
                text = _HEADER
            made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self._replace(f"{text.rstrip()}\n# {made}\n{_line(new_key())}")
        return self._existing()

    def _existing(self) -> Keyring:
        keyring = self.current()
        if keyring is None:
            raise FailedPrecondition(f"{self._path} was removed while it was written")
        return keyring

    def _parsed(self, text: str) -> Keyring:
        keys: list[Key] = []
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                keys.append(key_from_text(line.strip(), f"line {number} of {self._path}"))
        if not keys:
            raise FailedPrecondition(
                f"{self._path} holds no key of the secrets: put it back from a backup, or remove the file if there are "
                "no secrets yet"
            )
        return Keyring(keys, self.source)

    @contextlib.contextmanager
    def _alone(self) -> Generator[None]:
        """One writer at a time, of all processes of this machine."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise FailedPrecondition(f"the folder of {self._path} cannot be used: {error}") from error
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
            os.fsync(folder)
        except OSError as error:
            raise FailedPrecondition(f"the keys of the secrets cannot be written to {self._path}: {error}") from error
        finally:
            os.close(folder)

    def _replace(self, text: str) -> None:
        """As a whole, and on the disk, before anything is encrypted with what it says."""
        draft = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as opened:
                opened.write(text)
                opened.flush()
                os.fsync(opened.fileno())
            draft.replace(self._path)
        finally:
            draft.unlink(missing_ok=True)


def _line(key: Key) -> str:
    return f"{key_to_text(key)}\n"
