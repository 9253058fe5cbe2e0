"""The head that an app gets, and the headers of its answer."""

from __future__ import annotations

import pytest

from flyte_binary.app.ingress.headers import body_kind, request_head, response_headers, switched_head
from flyte_binary.app.ingress.outside import Outside
from flyte_binary.app.ingress.target import Target
from flyte_binary.domain.ids import AppId
from tests.unit.app.ingress.scopes import scope_of

TARGET = Target(AppId("p", "d", "n"), "/apps/p/d/n", b"/x?a=1")
OUTSIDE = Outside("https", "flyte.example.com", "443", "9.9.9.9, 127.0.0.1", "/flyte/apps/p/d/n")


def head(*headers: tuple[str, str], method: str = "GET", upgrade: bool = False) -> list[str]:
    scope = scope_of(method=method, headers=list(headers))
    text = request_head(scope, TARGET, OUTSIDE, upgrade=upgrade).decode()
    assert text.endswith("\r\n\r\n")
    return text.removesuffix("\r\n\r\n").split("\r\n")


OURS = [
    "x-forwarded-for: 9.9.9.9, 127.0.0.1",
    "x-forwarded-proto: https",
    "x-forwarded-host: flyte.example.com",
    "x-forwarded-port: 443",
    "x-forwarded-prefix: /flyte/apps/p/d/n",
]


def test_the_apps_head_has_its_own_path_and_the_public_host() -> None:
    assert head() == ["GET /x?a=1 HTTP/1.1", "host: flyte.example.com", *OURS]


def test_what_others_say_of_where_a_request_came_from_stays_behind() -> None:
    said = [("x-forwarded-for", "6.6.6.6"), ("forwarded", "for=6.6.6.6"), ("x_forwarded_for", "6.6.6.6")]
    assert head(*said, ("x-real-ip", "6.6.6.6")) == [*head()[:2], "x-real-ip: 6.6.6.6", *OURS]


def test_what_is_of_one_connection_stays_on_it() -> None:
    mine = [("connection", "close, X-Mine"), ("x-mine", "1"), ("te", "trailers"), ("keep-alive", "timeout=1")]
    assert head(*mine, ("cookie", "a=1"), ("cookie", "b=2")) == [*head()[:2], "cookie: a=1", "cookie: b=2", *OURS]


def test_a_length_is_never_of_one_connection() -> None:
    assert "content-length: 4" in head(("connection", "content-length"), ("content-length", "4"), method="POST")


def test_chunks_are_made_anew_and_patience_is_passed_on() -> None:
    lines = head(("transfer-encoding", "chunked"), ("expect", "100-Continue"), ("expect", "x"), method="POST")
    assert lines == ["POST /x?a=1 HTTP/1.1", "host: flyte.example.com", *OURS, *lines[-2:]]
    assert lines[-2:] == ["transfer-encoding: chunked", "expect: 100-continue"]


def test_an_upgrade_names_its_protocol() -> None:
    lines = head(("connection", "Upgrade, X-Mine"), ("upgrade", "websocket"), ("x-mine", "1"), upgrade=True)
    assert lines == [*head(), "connection: Upgrade", "upgrade: websocket"]


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ([], ""),
        ([(b"content-length", b"0")], ""),
        ([(b"content-length", b"4")], "length"),
        ([(b"transfer-encoding", b"Chunked")], "chunked"),
        ([(b"transfer-encoding", b"gzip, chunked")], "coded"),
        ([(b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")], "coded"),
        ([(b"transfer-encoding", b"identity")], "coded"),
    ],
)
def test_the_framing_of_a_body(headers: list[tuple[bytes, bytes]], kind: str) -> None:
    assert body_kind(headers) == kind


def test_an_answer_keeps_order_and_repetition() -> None:
    headers = [(b"set-cookie", b"a=1"), (b"x-a", b"1"), (b"set-cookie", b"b=2; path=/b"), (b"x-a", b"2")]
    expected = [headers[0], headers[1], (b"set-cookie", b"b=2; path=/flyte/apps/p/d/n/b"), headers[3]]
    dropped = [(b"connection", b"x-b"), (b"x-b", b"1"), (b"keep-alive", b"timeout=5"), (b"date", b"now")]
    assert response_headers(200, [*dropped, *headers], OUTSIDE, 5000) == expected


@pytest.mark.parametrize(("status", "kept"), [(200, True), (206, True), (204, False), (304, False)])
def test_an_answer_without_a_body_has_no_length(status: int, kept: bool) -> None:
    length = (b"content-length", b"7")
    assert response_headers(status, [length], OUTSIDE, 5000) == ([length] if kept else [])


def test_a_changed_protocol_is_named_to_the_client() -> None:
    headers = [(b"connection", b"upgrade"), (b"upgrade", b"websocket"), (b"sec-websocket-accept", b"x")]
    assert switched_head(headers, OUTSIDE, 5000) == (
        b"HTTP/1.1 101 Switching Protocols\r\nsec-websocket-accept: x\r\n"
        b"connection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    )
