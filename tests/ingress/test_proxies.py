"""The one origin behind real proxies: TLS ends at the edge, and a path is taken off there."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from tests.ingress.conftest import PREFIX, Ingress, body_of, reply
from tests.ingress.proxies import BELOW, Edge, start_haproxy, start_nginx
from tests.ingress.test_requests import echo, header

MIB = 1024 * 1024


@pytest.fixture(params=[start_nginx, start_haproxy], ids=["nginx", "haproxy"])
async def edge(request: pytest.FixtureRequest, ingress: Ingress) -> AsyncIterator[Edge]:
    running = await asyncio.to_thread(request.param, ingress.port)
    yield Edge(running)
    running.end()


@pytest.fixture
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(verify=False, timeout=20) as client:
        yield client


async def test_an_app_learns_its_public_address(edge: Edge, ingress: Ingress, browser: httpx.AsyncClient) -> None:
    await ingress.serves(echo)
    seen = (await browser.get(f"{edge.url}{PREFIX}/a%20b?q=1", headers={"X-Forwarded-For": "6.6.6.6"})).json()
    host = edge.origin.removeprefix("https://")
    assert (seen["path"], seen["query"]) == ("/a%20b", "q=1")
    assert header(seen, "host") == header(seen, "x-forwarded-host") == [host]
    assert header(seen, "x-forwarded-proto") == ["https"]
    assert header(seen, "x-forwarded-port") == [host.partition(":")[2]]
    assert header(seen, "x-forwarded-prefix") == [BELOW + PREFIX]
    assert header(seen, "x-forwarded-for")[0].endswith("127.0.0.1, 127.0.0.2")


async def test_redirects_never_show_the_inner_host(edge: Edge, ingress: Ingress, browser: httpx.AsyncClient) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        inside = f"http://127.0.0.1:{ingress.activator.port}"
        places = {"/inside": f"{inside}/docs", "/server": f"http://127.0.0.1:{ingress.port}/docs", "/path": "/docs"}
        if scope["path"] in places:
            await reply(send, b"", (b"location", places[scope["path"]].encode()), status=302)
        else:
            await echo(scope, receive, send)

    await ingress.serves(app)
    for path in ("/inside", "/path"):
        answer = await browser.get(f"{edge.url}{PREFIX}{path}")
        assert urljoin(str(answer.url), answer.headers["location"]) == f"{edge.url}{PREFIX}/docs"
    for path in (PREFIX, f"{PREFIX}?a=1", "/", "/v2"):
        answer = await browser.get(f"{edge.url}{path}")
        assert answer.is_redirect
        assert str(ingress.port) not in str(answer.headers)
        followed = await browser.get(f"{edge.url}{path}", follow_redirects=True)
        assert (followed.status_code, str(followed.url).startswith(edge.url)) == (200, True)


async def test_one_origin_answers_everything_each_in_its_own_way(
    edge: Edge, ingress: Ingress, browser: httpx.AsyncClient
) -> None:
    await ingress.serves(echo)
    page = await browser.get(f"{edge.url}/v2/domain/development/project/flytesnacks/runs/r1")
    assert "<title>Flyte</title>" in page.text
    files = [urljoin(str(page.url), name) for name in re.findall(r'(?:src|href)="([^"]+)"', page.text)]
    assert len(files) >= 3
    for file in files:
        assert (file.startswith(f"{edge.url}/v2/"), (await browser.get(file)).status_code) == (True, 200)
    assert (await browser.get(f"{edge.url}/healthz")).status_code == 200
    missing = (
        *("/flyteidl2.project.ProjectService/ListProjects", "/flyteidl2.Nothing/AtAll", "/.well-known/nothing"),
        *("/apps", "/apps/", "/apps/flytesnacks", "/apps/flytesnacks/development/none/v2/x", "/v2x", "/nothing"),
    )
    for path in missing:
        for answer in (await browser.get(f"{edge.url}{path}"), await browser.post(f"{edge.url}{path}", json={})):
            assert (answer.status_code in (404, 405, 501), "<title>Flyte" in answer.text) == (True, False), path


async def test_bodies_and_events_are_streamed(edge: Edge, ingress: Ingress, browser: httpx.AsyncClient) -> None:
    seen = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "POST":
            await reply(send, str(len(await body_of(receive))).encode())
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        await seen.wait()
        await send({"type": "http.response.body", "body": b"data: 2\n\n"})

    await ingress.serves(app)

    async def blocks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * MIB

    assert (await browser.post(f"{edge.url}{PREFIX}/", content=blocks())).text == str(20 * MIB)
    async with asyncio.timeout(10), browser.stream("GET", f"{edge.url}{PREFIX}/events") as events:
        parts = events.aiter_raw()
        assert await anext(parts) == b"data: 1\n\n"
        seen.set()
        assert await anext(parts) == b"data: 2\n\n"


async def test_a_replica_that_dies_is_seen_through_the_proxy(
    edge: Edge, ingress: Ingress, browser: httpx.AsyncClient
) -> None:
    async def app(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegin\r\n")
        await writer.drain()
        writer.close()

    await ingress.serves_raw(app)
    with pytest.raises(httpx.TransportError):
        await browser.get(f"{edge.url}{PREFIX}/")


async def test_websockets_pass_through(edge: Edge, ingress: Ingress) -> None:
    async def handler(connection: ServerConnection) -> None:
        async for message in connection:
            await connection.send(message)

    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with serve(handler, "127.0.0.1", 0) as server:
        ingress.activator.port = next(iter(server.sockets)).getsockname()[1]
        url = f"wss{edge.url.removeprefix('https')}{PREFIX}/ws"
        async with connect(url, ssl=trusting, origin=edge.origin) as client:  # pyright: ignore[reportArgumentType]
            for message in ("hello", b"\0" * 500_000):
                await client.send(message)
                assert await client.recv() == message


async def test_pages_of_the_one_origin_may_call_their_apps(
    edge: Edge, ingress: Ingress, browser: httpx.AsyncClient
) -> None:
    await ingress.serves(echo)
    own = {"Origin": edge.origin}
    assert (await browser.post(f"{edge.url}{PREFIX}/", headers=own)).status_code == 200
    assert (await browser.get(f"{edge.url}/v2/", headers={"Origin": "https://evil.example"})).status_code == 403
