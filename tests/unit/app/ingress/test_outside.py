"""Under which address an app is known to whom."""

from __future__ import annotations

import pytest

from flyte_binary.app.ingress.outside import Outside, outside_of
from flyte_binary.app.ingress.target import Target
from flyte_binary.domain.ids import AppId
from flyte_binary.rpc.identity import TrustedPeers
from tests.unit.app.ingress.scopes import scope_of

PREFIX = "/apps/p/d/n"
TARGET = Target(AppId("p", "d", "n"), PREFIX, b"/")
BY_HOST = Target(AppId("p", "d", "n"), "", b"/")
SAID = [
    ("x-forwarded-for", "9.9.9.9, 8.8.8.8"),
    ("x-forwarded-for", "7.7.7.7"),
    ("x-forwarded-proto", "HTTPS, http"),
    ("x-forwarded-host", "flyte.example.com, inner"),
    ("x-forwarded-prefix", "/flyte/"),
]


def test_nobody_is_believed_who_is_not_listed() -> None:
    found = outside_of(scope_of(headers=SAID), TARGET, TrustedPeers(["10.0.0.0/8"]))
    assert found == Outside("http", "localhost:30080", "30080", "127.0.0.1", PREFIX)


def test_a_listed_proxy_is_and_adds_itself_to_those_before_it() -> None:
    found = outside_of(scope_of(headers=SAID, peer="10.1.2.3"), TARGET, TrustedPeers(["10.0.0.0/8"]))
    peers = "9.9.9.9, 8.8.8.8, 7.7.7.7, 10.1.2.3"
    assert found == Outside("https", "flyte.example.com", "443", peers, f"/flyte{PREFIX}")


def test_a_listed_proxy_that_says_nothing_changes_nothing() -> None:
    found = outside_of(scope_of(), TARGET, TrustedPeers(["127.0.0.1"]))
    assert found == Outside("http", "localhost:30080", "30080", "127.0.0.1", PREFIX)


@pytest.mark.parametrize(
    ("header", "value", "field", "expected"),
    [
        ("x-forwarded-proto", "gopher", "scheme", "http"),
        ("x-forwarded-port", "8443", "port", "8443"),
        ("x-forwarded-port", "many", "port", "30080"),
        ("x-forwarded-host", "flyte.example.com:8443", "port", "8443"),
        ("x-forwarded-host", "[::1]", "port", "80"),
        ("x-forwarded-prefix", "//evil.example", "prefix", PREFIX),
        ("x-forwarded-prefix", "https://evil.example", "prefix", PREFIX),
        ("x-forwarded-prefix", "/", "prefix", PREFIX),
    ],
)
def test_what_makes_no_sense_is_not_repeated(header: str, value: str, field: str, expected: str) -> None:
    found = outside_of(scope_of(headers=[(header, value)]), TARGET, TrustedPeers(["127.0.0.1"]))
    assert getattr(found, field) == expected


def test_by_its_host_an_app_has_no_prefix() -> None:
    assert outside_of(scope_of(headers=SAID), BY_HOST, TrustedPeers(["127.0.0.1"])).prefix == ""
