from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from flyte_binary.domain.errors import Internal, PermissionDenied
from flyte_binary.storage.signed import PREFIX, UrlSigner, load_or_create_key
from flyte_binary.storage.store import Verb

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MD5 = bytes(range(16))
SIGNER = UrlSigner(b"k" * 32)


def signed(verb: Verb = Verb.PUT, path: str = "/store/a b", md5: bytes | None = MD5) -> tuple[str, dict[str, str]]:
    url = SIGNER.url("http://h:1", verb, path, expires_at=NOW + timedelta(minutes=5), md5=md5)
    parts = urlsplit(url)
    return unquote(parts.path).removeprefix(PREFIX), dict(parse_qsl(parts.query))


def test_a_url_allows_what_it_was_made_for() -> None:
    path, query = signed()
    grant = SIGNER.check(Verb.PUT, path, query, now=NOW)
    assert (grant.path, grant.md5) == ("/store/a b", MD5)


def test_without_an_md5_any_content_is_allowed() -> None:
    path, query = signed(md5=None)
    assert "md5" not in query
    assert SIGNER.check(Verb.PUT, path, query, now=NOW).md5 is None


def test_it_allows_nothing_else() -> None:
    path, query = signed()
    altered = [
        (Verb.GET, path, query),
        (Verb.PUT, path + "c", query),
        (Verb.PUT, path, {**query, "expires": str(int(query["expires"]) + 1)}),
        (Verb.PUT, path, {**query, "md5": "00" * 16}),
        (Verb.PUT, path, {name: value for name, value in query.items() if name != "md5"}),
        (Verb.PUT, path, {**query, "sig": query["sig"][:-1] + ("0" if query["sig"][-1] != "0" else "1")}),
        (Verb.PUT, path, {**query, "sig": ""}),
        (Verb.PUT, path, {**query, "sig": "ü"}),
        (Verb.PUT, path, {}),
    ]
    for verb, other_path, other_query in altered:
        with pytest.raises(PermissionDenied, match="altered"):
            SIGNER.check(verb, other_path, other_query, now=NOW)


def test_another_servers_key_does_not_fit() -> None:
    path, query = signed()
    with pytest.raises(PermissionDenied, match="altered"):
        UrlSigner(b"o" * 32).check(Verb.PUT, path, query, now=NOW)


def test_an_expired_url_is_refused_in_the_words_that_the_sdk_knows() -> None:
    path, query = signed()
    SIGNER.check(Verb.PUT, path, query, now=NOW + timedelta(minutes=5, seconds=-1))
    with pytest.raises(PermissionDenied, match="Request has expired"):
        SIGNER.check(Verb.PUT, path, query, now=NOW + timedelta(minutes=5))


def test_the_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "signing"
    key = load_or_create_key(file)
    assert len(key) == 32
    assert load_or_create_key(file) == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["signing"]


def test_servers_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(lambda _: load_or_create_key(tmp_path / "signing"), range(64)))
    assert len(keys) == 1


def test_a_damaged_key_stops_the_start_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "signing").write_bytes(b"short")
    with pytest.raises(Internal, match="remove the file"):
        load_or_create_key(tmp_path / "signing")
