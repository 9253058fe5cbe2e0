"""Keys: how values are sealed, and the file that the keys are in."""

from __future__ import annotations

import base64
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from flyte_binary.domain.errors import FailedPrecondition
from flyte_binary.domain.secrets import SecretId, SecretScope
from flyte_binary.secret.keyring import Keyring, key_from_text, key_to_text, new_key
from flyte_binary.secret.keys import GivenKeys, KeyFile

TOKEN = SecretId(SecretScope("d", "p"), "token")


def text_of(material: bytes) -> str:
    return base64.b64encode(material).decode()


def test_what_is_sealed_is_opened_and_shows_nothing_of_the_value() -> None:
    keyring = Keyring([new_key()], "test")
    sealed = keyring.seal(TOKEN, b"a value")

    assert keyring.open(TOKEN, sealed) == b"a value"
    assert b"a value" not in sealed.ciphertext
    again = keyring.seal(TOKEN, b"a value")
    assert again.nonce != sealed.nonce and again.ciphertext != sealed.ciphertext


@pytest.mark.parametrize(
    "other",
    [
        SecretId(SecretScope("d", "p"), "other"),
        SecretId(SecretScope("d", ""), "token"),
        SecretId(SecretScope("", ""), "token"),
        SecretId(SecretScope("p", "d"), "token"),
        SecretId(SecretScope("d", "pt"), "oken"),
    ],
)
def test_a_row_that_was_moved_to_another_name_or_scope_does_not_open(other: SecretId) -> None:
    keyring = Keyring([new_key()], "test")
    with pytest.raises(FailedPrecondition, match="damaged or moved"):
        keyring.open(other, keyring.seal(TOKEN, b"a value"))


def test_a_changed_row_does_not_open() -> None:
    keyring = Keyring([new_key()], "test")
    sealed = keyring.seal(TOKEN, b"a value")
    flipped = bytes([sealed.ciphertext[0] ^ 1]) + sealed.ciphertext[1:]
    for changed in (
        replace(sealed, ciphertext=flipped),
        replace(sealed, nonce=bytes(12)),
        replace(sealed, nonce=b""),
        replace(sealed, ciphertext=b""),
    ):
        with pytest.raises(FailedPrecondition, match="damaged or moved"):
            keyring.open(TOKEN, changed)


def test_the_newest_key_seals_and_older_ones_still_open() -> None:
    old, new = new_key(), new_key()
    before = Keyring([old], "test").seal(TOKEN, b"a value")
    both = Keyring([old, new], "test")

    assert both.newest == new.id
    assert both.seal(TOKEN, b"").key_id == new.id
    assert both.open(TOKEN, before) == b"a value"
    with pytest.raises(FailedPrecondition, match=f"{old.id}, which is not in the file"):
        Keyring([new], "the file").open(TOKEN, before)


def test_a_key_is_not_shown() -> None:
    key = key_from_text(text_of(b"k" * 32), "here")
    assert key_to_text(key) == text_of(b"k" * 32)
    assert "kkk" not in repr(key) and text_of(b"k" * 32) not in repr(key)


@pytest.mark.parametrize("text", ["", "short", text_of(b"k" * 16), text_of(b"k" * 33), "ü", "=" * 44])
def test_what_is_no_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(FailedPrecondition, match=r"entry 1 of secret\.keys is no key") as caught:
        GivenKeys([text])
    assert not text or text not in caught.value.message


def test_given_keys_are_used_in_their_order_and_nobody_adds_to_them() -> None:
    old, new = new_key(), new_key()
    keys = GivenKeys([key_to_text(old), f" {key_to_text(new)} "])

    assert keys.first().newest == new.id
    assert keys.add() is None


def test_the_file_is_made_with_the_first_key_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secrets.key"
    keys = KeyFile(path)

    assert keys.current() is None
    assert not path.exists()
    keyring = keys.first()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KeyFile(path).first().newest == keyring.newest
    assert list(path.parent.iterdir()) == [path]


def test_servers_that_make_the_first_key_at_once_agree(tmp_path: Path) -> None:
    newest: list[str] = []
    start = threading.Barrier(8)

    def make() -> None:
        keys = KeyFile(tmp_path / "secrets.key")
        start.wait()
        newest.append(keys.first().newest)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(newest) == 8 and len(set(newest)) == 1


def test_an_added_key_is_seen_by_a_server_that_runs(tmp_path: Path) -> None:
    path = tmp_path / "secrets.key"
    serving = KeyFile(path)
    before = serving.first()
    added = KeyFile(path).add()

    keyring = serving.current()
    assert keyring is not None
    assert keyring.newest == added.newest != before.newest
    assert before.newest in keyring


def test_an_older_file_without_a_newline_at_its_end_gets_a_line_of_its_own_for_the_new_key(tmp_path: Path) -> None:
    path = tmp_path / "secrets.key"
    path.write_text(key_to_text(old := new_key()))
    assert old.id in KeyFile(path).add()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"# nothing but words\n", "holds no key"),
        (b"", "holds no key"),
        (b"# words\nc2hvcnQ=\n", "line 2 of .*secrets.key is no key"),
        (b"\xff\xfe", "cannot be read from .*secrets.key"),
    ],
)
def test_a_broken_file_is_refused_and_never_replaced(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "secrets.key"
    path.write_bytes(content)
    for use in (KeyFile(path).current, KeyFile(path).first):
        with pytest.raises(FailedPrecondition, match=says):
            use()
    assert path.read_bytes() == content


def test_a_folder_in_the_place_of_the_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "secrets.key").mkdir()
    with pytest.raises(FailedPrecondition, match="cannot be read"):
        KeyFile(tmp_path / "secrets.key").first()
