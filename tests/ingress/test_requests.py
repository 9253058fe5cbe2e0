"""What an app gets of a request, and a client of its answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from flyte_binary.app.ingress.ports import AppBusy, AppFailed, AppStopped, StartTimeout
from tests.ingress.conftest import APP, LABEL, PREFIX, Ingress, body_of, reply


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """What was asked, as JSON."""
    headers = [[name.decode(), value.decode("latin-1")] for name, value in scope["headers"]]
    seen = {
        "method": scope["method"],
        "path": scope["raw_path"].decode(),
        "query": scope["query_string"].decode(),
        "headers": headers,
        "body": len(await body_of(receive)),
    }
    await reply(send, json.dumps(seen).encode(), (b"content-type", b"application/json"))


def header(seen: dict[str, Any], name: str) -> list[str]:
    return [value for key, value in seen["headers"] if key == name]


async def test_the_app_gets_the_path_below_its_own_as_it_came(ingress: Ingress) -> None:
    await ingress.serves(echo)
    seen = (await ingress.client.get(f"{ingress.url}/items/a%2Fb%20c/?q=1&q=%20")).json()
    assert (seen["path"], seen["query"]) == ("/items/a%2Fb%20c/", "q=1&q=%20")


async def test_the_app_is_told_who_asked_how_and_under_which_prefix(ingress: Ingress) -> None:
    await ingress.serves(echo)
    lies = {"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Prefix": "/evil", "Forwarded": "for=6.6.6.6"}
    seen = (await ingress.client.get(f"{ingress.url}/", headers=lies)).json()
    assert header(seen, "x-forwarded-for") == ["127.0.0.1"]
    assert header(seen, "x-forwarded-proto") == ["http"]
    assert header(seen, "x-forwarded-host") == header(seen, "host") == [f"127.0.0.1:{ingress.port}"]
    assert header(seen, "x-forwarded-port") == [str(ingress.port)]
    assert header(seen, "x-forwarded-prefix") == [PREFIX]
    assert header(seen, "forwarded") == []


async def test_headers_of_one_connection_stay_on_it_and_others_keep_order_and_repetition(ingress: Ingress) -> None:
    await ingress.serves(echo)
    reader, writer = await ingress.raw(
        f"GET {PREFIX}/ HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, X-Private\r\nX-Private: 1\r\n"
        "X-Many: a\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\nX-Many: b\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    seen = json.loads(await reader.readexactly(length))
    writer.close()
    assert header(seen, "x-many") == ["a", "b"]
    for name in ("connection", "x-private", "keep-alive", "te"):
        assert header(seen, name) == []


async def test_an_app_is_reached_by_its_host_too_and_then_has_no_prefix(ingress: Ingress) -> None:
    await ingress.serves(echo)
    host = {"Host": f"{LABEL}.localhost:{ingress.port}"}
    for path in ("/", "/healthz", "/v2/x", "/apps/other/development/app/", "/flyteidl2.project.ProjectService/X", "//"):
        seen = (await ingress.client.get(f"http://127.0.0.1:{ingress.port}{path}", headers=host)).json()
        assert seen["path"] == path
        assert header(seen, "x-forwarded-prefix") == []


async def test_other_paths_are_the_servers_and_an_unknown_app_is_not_found(ingress: Ingress) -> None:
    await ingress.serves(echo)
    base = f"http://127.0.0.1:{ingress.port}"
    assert (await ingress.client.get(f"{base}/v2/x")).text.count("<title>Flyte") == 1
    assert (await ingress.client.get(f"{base}/healthz")).status_code == 200
    for path in ("/apps/flytesnacks/development/none/", "/apps/flytesnacks/development/none/v2/x"):
        answer = await ingress.client.get(f"{base}{path}")
        assert (answer.status_code, "none not found" in answer.text) == (404, True)
    for path in ("/apps", "/apps/", "/apps/only-two/parts", "/apps//development/my-app/", "/apps/../v2/x/"):
        answer = await ingress.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 404")
        assert b"<title>" not in answer


async def test_a_path_cannot_lead_out_of_an_app(ingress: Ingress) -> None:
    await ingress.serves(echo)
    for path in ("/../../../v2/x", "/%2e%2e/%2e%2e/x", "//v2/x"):
        answer = await ingress.ask(
            f"GET {PREFIX}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["path"] == path


async def test_hosts_below_localhost_are_for_apps_alone(ingress: Ingress) -> None:
    await ingress.serves(echo)
    for path in ("/", "/healthz", "/v2/x", "/flyteidl2.project.ProjectService/ListProjects"):
        for host in ("gone-flytesnacks-development.localhost", f"a.{LABEL}.localhost"):
            answer = await ingress.client.get(f"http://127.0.0.1:{ingress.port}{path}", headers={"Host": host})
            assert (answer.status_code, host in answer.text) == (404, True)
    for host in ("flyte.localhost", "FLYTE.localhost.:80", "localhost"):
        answer = await ingress.client.get(f"http://127.0.0.1:{ingress.port}/v2/x", headers={"Host": host})
        assert "<title>Flyte" in answer.text


@pytest.mark.parametrize("query", ["", "?a=1"])
async def test_the_prefix_alone_leads_to_the_prefix_with_a_slash(ingress: Ingress, query: str) -> None:
    await ingress.serves(echo)
    answer = await ingress.client.get(ingress.url + query)
    assert (answer.status_code, answer.headers["location"]) == (307, f"my-app/{query}")
    followed = await ingress.client.get(ingress.url + query, follow_redirects=True)
    assert followed.json()["path"] == "/"
    assert (await ingress.client.post(ingress.url, content=b"x")).json()["method"] == "POST"


async def test_a_name_cannot_end_the_header_that_it_is_repeated_in(ingress: Ingress) -> None:
    answer = await ingress.client.get(f"http://127.0.0.1:{ingress.port}/apps/p/d/a%0d%0aSet-Cookie:%20x=1%2F..")
    assert answer.headers["location"] == "a%0D%0ASet-Cookie%3A%20x%3D1%2F../"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("content", [b"", b"x" * 10, b"x" * 3_000_000])
async def test_bodies_arrive_whole_with_a_length_and_in_chunks(ingress: Ingress, content: bytes) -> None:
    await ingress.serves(echo)

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 100_000):
            yield content[start : start + 100_000]

    assert (await ingress.client.post(f"{ingress.url}/", content=content)).json()["body"] == len(content)
    assert (await ingress.client.put(f"{ingress.url}/", content=parts())).json()["body"] == len(content)


async def test_an_answer_304_may_say_how_long_the_unchanged_page_is(ingress: Ingress) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 1234\r\netag: x\r\n\r\n")

    await ingress.serves_raw(app)
    for _ in range(2):
        answer = await ingress.client.get(f"{ingress.url}/")
        assert (answer.status_code, answer.headers["etag"], answer.content) == (304, "x", b"")


async def test_answers_without_a_body_have_none(ingress: Ingress) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        status = int(scope["path"].removeprefix("/"))
        await send({"type": "http.response.start", "status": status, "headers": [(b"x-seen", b"1")]})
        await send({"type": "http.response.body", "body": b"hello" if status == 200 else b""})

    await ingress.serves(app)
    for _ in range(2):  # the second one over a kept connection
        for status in (204, 304):
            answer = await ingress.client.get(f"{ingress.url}/{status}")
            assert "content-length" not in answer.headers
            assert (answer.status_code, answer.content, answer.headers["x-seen"]) == (status, b"", "1")
        answer = await ingress.client.head(f"{ingress.url}/200")
        assert (answer.status_code, answer.content) == (200, b"")
        assert (await ingress.client.get(f"{ingress.url}/200")).content == b"hello"


async def test_redirects_and_cookies_of_the_app_stay_below_its_prefix(ingress: Ingress) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        inside = f"http://127.0.0.1:{ingress.activator.port}"
        locations = {
            "/path": "/docs?x=1",
            "/known": f"{PREFIX}/docs",
            "/relative": "docs",
            "/inside": f"{inside}/docs",
            "/outside": f"http://127.0.0.1:{ingress.port}/docs",
            "/elsewhere": "https://example.com/docs",
        }
        cookies = [(b"set-cookie", b"a=1; Path=/; HttpOnly"), (b"set-cookie", b"b=2")]
        location = (b"location", locations[scope["path"]].encode())
        await reply(send, b"", location, *cookies, status=302)

    await ingress.serves(app)
    expected = {
        "/path": f"{PREFIX}/docs?x=1",
        "/known": f"{PREFIX}/docs",
        "/relative": "docs",
        "/inside": f"{ingress.url}/docs",
        "/outside": f"{ingress.url}/docs",
        "/elsewhere": "https://example.com/docs",
    }
    for path, location in expected.items():
        answer = await ingress.client.get(f"{ingress.url}{path}")
        assert answer.headers["location"] == location
        assert answer.headers.get_list("set-cookie") == [f"a=1; Path={PREFIX}/; HttpOnly", "b=2"]
        assert str(ingress.activator.port) not in str(answer.headers)


async def test_pages_of_other_origins_are_the_apps_own_business_but_not_the_servers(ingress: Ingress) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await reply(send, b"", (b"access-control-allow-origin", b"https://friend.example"))

    await ingress.serves(app)
    stranger = {"Origin": "https://friend.example"}
    answer = await ingress.client.get(f"{ingress.url}/", headers=stranger)
    assert answer.headers.get_list("access-control-allow-origin") == ["https://friend.example"]
    refused = await ingress.client.get(f"http://127.0.0.1:{ingress.port}/v2/x", headers=stranger)
    assert refused.status_code == 403
    rebound = await ingress.client.get(f"{ingress.url}/", headers={"Host": "evil.example"})
    assert rebound.status_code == 403


@pytest.mark.parametrize(
    ("refusal", "status", "retry"),
    [
        (AppStopped(APP), 503, None),
        (AppBusy(APP), 503, "1"),
        (AppFailed(APP, "exit code 3\nImportError: <b>", retry_after=3.2), 503, "4"),
        (StartTimeout(APP), 504, None),
    ],
)
async def test_without_a_replica_there_is_a_sentence(
    ingress: Ingress, refusal: Exception, status: int, retry: str | None
) -> None:
    ingress.activator.refusal = refusal
    answer = await ingress.client.get(f"{ingress.url}/")
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, retry)
    assert str(refusal) in answer.text
    page = await ingress.client.get(f"{ingress.url}/", headers={"Accept": "text/html,*/*"})
    assert page.headers["content-type"].startswith("text/html")
    assert "<b>" not in page.text
