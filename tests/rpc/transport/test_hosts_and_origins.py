from __future__ import annotations

import httpx
import pytest

from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.server import build_app
from tests.rpc.transport.conftest import RUN_SERVICE, World
from tests.rpc.transport.probe import Probe

DETAILS = "/flyteidl2.workflow.RunService/GetRunDetails"
PROTO = {"content-type": "application/proto"}


@pytest.fixture
def public(world: World) -> httpx.AsyncClient:
    app = build_app(
        mount([ServiceMount(RUN_SERVICE, Probe())], world.settings),
        drain=world.settings.drain,
        allowed_hosts=["flyte.example.com", "*.internal"],
        allowed_origins=["https://console.example.com"],
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://flyte.example.com")


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:30080", "LOCALHOST", "app.localhost:1", "127.0.0.1:30080", "[::1]:30080", "10.1.2.3"],
)
async def test_loopback_names_and_addresses_are_served(http: httpx.AsyncClient, host: str) -> None:
    assert (await http.post(DETAILS, headers=PROTO | {"host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil:80", "x@y"])
@pytest.mark.parametrize("path", [DETAILS, "/healthz", "/metrics"])
async def test_any_other_name_is_refused_with_the_setting_to_change(
    http: httpx.AsyncClient, host: str, path: str
) -> None:
    response = await http.post(path, headers=PROTO | {"host": host})
    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")
    assert "runs.server.allowedHosts" in response.json()["message"]


@pytest.mark.parametrize("headers", [[], [("host", "localhost"), ("host", "evil.example")], [("host", "")]])
async def test_a_request_needs_exactly_one_host(world: World, headers: list[tuple[str, str]]) -> None:
    sent: list[dict[str, object]] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/healthz",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    await world.app(scope, receive, send)
    assert sent[0]["status"] == 400


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("flyte.example.com", 200),
        ("FLYTE.example.com:443", 200),
        ("flyte.example.com.", 200),
        ("a.internal", 200),
        ("a.b.internal", 200),
        ("localhost", 200),
        ("example.com", 403),
        ("internal", 403),
        ("other.example.com", 403),
    ],
)
async def test_configured_names_are_served(public: httpx.AsyncClient, host: str, status: int) -> None:
    assert (await public.post(DETAILS, headers=PROTO | {"host": host})).status_code == status


async def test_a_page_of_this_server_may_call_it(http: httpx.AsyncClient) -> None:
    headers = PROTO | {"host": "localhost:30080", "origin": "http://localhost:30080"}
    assert (await http.post(DETAILS, headers=headers)).status_code == 200


async def test_a_page_of_this_server_behind_a_proxy_that_ends_tls_may_call_it(public: httpx.AsyncClient) -> None:
    headers = PROTO | {"origin": "https://flyte.example.com"}
    assert (await public.post(DETAILS, headers=headers)).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:3000", "file://", "https://"])
async def test_a_page_of_anyone_else_may_not(http: httpx.AsyncClient, origin: str) -> None:
    headers = PROTO | {"host": "localhost:30080", "origin": origin}
    response = await http.post(DETAILS, headers=headers)
    assert (response.status_code, response.json()["code"]) == (403, "permission_denied")
    assert "runs.server.cors.allowedOrigins" in response.json()["message"]
    assert "access-control-allow-origin" not in response.headers


async def test_a_listed_origin_may_call_and_read_the_answer(public: httpx.AsyncClient) -> None:
    origin = {"origin": "https://console.example.com"}
    preflight = await public.options(DETAILS, headers=origin | {"access-control-request-method": "POST"})
    answer = await public.post(DETAILS, headers=PROTO | origin)
    assert (preflight.status_code, answer.status_code) == (204, 200)
    for response in (preflight, answer):
        assert response.headers["access-control-allow-origin"] == "https://console.example.com"
        assert "origin" in response.headers["vary"].lower()
    assert "Connect-Protocol-Version" in preflight.headers["access-control-allow-headers"]
    assert "Grpc-Status" in answer.headers["access-control-expose-headers"]


async def test_a_preflight_of_an_unlisted_origin_is_refused(http: httpx.AsyncClient) -> None:
    response = await http.options(DETAILS, headers={"origin": "http://evil.example"})
    assert response.status_code == 403
