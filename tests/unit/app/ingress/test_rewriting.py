"""Addresses of an app as its clients know them."""

from __future__ import annotations

import pytest

from flyte_binary.app.ingress.outside import Outside
from flyte_binary.app.ingress.rewriting import location, set_cookie

BELOW = "/flyte/apps/p/d/n"
BY_PATH = Outside("https", "flyte.example.com", "443", "", BELOW)
BY_HOST = Outside("http", "n-p-d.localhost:30080", "30080", "", "")


@pytest.mark.parametrize(
    ("value", "by_path", "by_host"),
    [
        ("docs", "docs", "docs"),
        ("?page=2", "?page=2", "?page=2"),
        ("/", f"{BELOW}/", "/"),
        ("/docs?next=/x#y", f"{BELOW}/docs?next=/x#y", "/docs?next=/x#y"),
        (f"{BELOW}/docs", f"{BELOW}/docs", f"{BELOW}/docs"),
        (f"{BELOW}?x", f"{BELOW}?x", f"{BELOW}?x"),
        (f"{BELOW}2/docs", f"{BELOW}{BELOW}2/docs", f"{BELOW}2/docs"),
        ("http://127.0.0.1:5000/docs", f"https://flyte.example.com{BELOW}/docs", f"http://{BY_HOST.host}/docs"),
        ("http://LOCALHOST:5000", f"https://flyte.example.com{BELOW}/", f"http://{BY_HOST.host}/"),
        ("http://0.0.0.0:5000/a?b#c", f"https://flyte.example.com{BELOW}/a?b#c", f"http://{BY_HOST.host}/a?b#c"),
        ("//[::1]:5000/a", f"https://flyte.example.com{BELOW}/a", f"http://{BY_HOST.host}/a"),
        ("http://127.0.0.1:5001/docs", "http://127.0.0.1:5001/docs", "http://127.0.0.1:5001/docs"),
        ("http://192.0.2.1:5000/docs", "http://192.0.2.1:5000/docs", "http://192.0.2.1:5000/docs"),
        ("https://login.example.com/?to=/x", "https://login.example.com/?to=/x", "https://login.example.com/?to=/x"),
        ("//cdn.example.com/x", "//cdn.example.com/x", "//cdn.example.com/x"),
        ("mailto:a@b.example", "mailto:a@b.example", "mailto:a@b.example"),
        ("http://[broken", "http://[broken", "http://[broken"),
    ],
)
def test_what_is_the_apps_own_is_given_its_public_address(value: str, by_path: str, by_host: str) -> None:
    assert location(value, BY_PATH, 5000) == by_path
    assert location(value, BY_HOST, 5000) == by_host


def test_the_public_address_keeps_the_schemes_of_the_edge() -> None:
    """An app behind TLS that does not know of it redirects to `http`."""
    assert location("http://flyte.example.com/docs", BY_PATH, 5000) == f"https://flyte.example.com{BELOW}/docs"
    assert location(f"http://flyte.example.com{BELOW}/docs", BY_PATH, 5000) == f"https://flyte.example.com{BELOW}/docs"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a=1", "a=1"),
        ("a=1; Path=/; HttpOnly", f"a=1; Path={BELOW}/; HttpOnly"),
        ("a=path=/x; path = /x ;Secure", f"a=path=/x; path ={BELOW}/x;Secure"),
        (f"a=1; Path={BELOW}/x", f"a=1; Path={BELOW}/x"),
        ("a=1; Path=x", "a=1; Path=x"),
        ("__Host-a=1; Path=/; Secure", "__Host-a=1; Path=/; Secure"),
    ],
)
def test_cookies_stay_below_the_prefix(value: str, expected: str) -> None:
    assert set_cookie(value, BELOW) == expected
