from __future__ import annotations

import asyncio
import socket

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from structlog.testing import capture_logs

from flyte_binary.domain.errors import PermissionDenied
from flyte_binary.rpc.disconnect import Drain
from flyte_binary.rpc.health import ReadinessCheck
from flyte_binary.rpc.mount import ServiceMount, mount
from flyte_binary.server import AddressInUse, Server, build_app
from tests.rpc.transport.conftest import RUN_SERVICE, Served
from tests.rpc.transport.probe import Probe, request_for
from tests.rpc.transport.raw import connection

DETAILS = "/flyteidl2.workflow.RunService/GetRunDetails"


class Parts:
    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.drain = Drain()

    async def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def client(self) -> httpx.AsyncClient:
        async def refuse(_: Request) -> Response:
            raise PermissionDenied("the signature does not match")

        async def fail(_: Request) -> Response:
            raise RuntimeError("a secret detail")

        async def hello(_: Request) -> Response:
            return PlainTextResponse("hello")

        app = build_app(
            mount([ServiceMount(RUN_SERVICE, Probe())]),
            drain=self.drain,
            routes=[Route("/refuse", refuse), Route("/fail", fail), Route("/hello", hello)],
            readiness=[ReadinessCheck("store", _fine), ReadinessCheck("database", self.check)],
            registry=CollectorRegistry(),
        )
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def _fine() -> None:
    return


async def test_the_process_is_healthy_as_long_as_it_answers() -> None:
    parts = Parts()
    parts.failure = OSError("disk I/O error")
    response = await parts.client().get("/healthz")
    assert (response.status_code, response.text) == (200, "OK")


async def test_ready_when_every_check_passes_else_the_failing_checks_text() -> None:
    parts = Parts()
    assert (await parts.client().get("/readyz")).text == "OK"
    parts.failure = OSError("disk I/O error")
    response = await parts.client().get("/readyz")
    assert (response.status_code, response.text) == (503, "database: disk I/O error")


async def test_not_ready_while_the_server_drains() -> None:
    parts = Parts()
    parts.drain.begin()
    assert (await parts.client().get("/readyz")).status_code == 503


async def test_metrics_are_in_prometheus_text(http: httpx.AsyncClient) -> None:
    await http.post(DETAILS, headers={"content-type": "application/proto"})
    response = await http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    line = 'flyte_rpc_requests_total{code="ok",method="flyteidl2.workflow.RunService/GetRunDetails"} 1.0'
    assert line in response.text.splitlines()


async def test_other_routes_are_served_beside_rpc() -> None:
    assert (await Parts().client().get("/hello")).text == "hello"


async def test_a_domain_error_of_a_plain_route_is_json_like_that_of_a_call() -> None:
    response = await Parts().client().get("/refuse")
    assert response.status_code == 403
    assert response.json() == {"code": "permission_denied", "message": "the signature does not match"}


async def test_a_bug_in_a_plain_route_is_one_line_in_the_log_and_no_detail_for_the_caller() -> None:
    with capture_logs() as logs:
        response = await Parts().client().get("/fail")
    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert "secret" not in response.text
    assert len(logs) == 1 and logs[0]["error_id"] in response.json()["message"]


def test_a_taken_port_is_refused_with_a_sentence_that_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUse, match=rf"127\.0\.0\.1:{port} is already in use.*--port"):
            Server(app=_nothing, drain=Drain(), port=port).bind()


def test_an_address_of_another_machine_is_refused_with_a_sentence() -> None:
    with pytest.raises(AddressInUse, match=r"Cannot listen on 192\.0\.2\.1:0: .*runs\.server\.host"):
        Server(app=_nothing, drain=Drain(), host="192.0.2.1", port=0).bind()


async def test_a_connection_is_kept_for_the_next_request(served: Served) -> None:
    body = request_for("r1").SerializeToString()
    async with connection(served.port) as client:
        for _ in range(3):
            await client.send(DETAILS, {"content-type": "application/proto"}, body)
            head = await client.head()
            assert "200 OK" in head and "close" not in head
            await client.reader.readexactly(int(head.lower().split("content-length: ")[1].split("\r")[0]))


async def test_an_idle_connection_does_not_keep_the_server(served: Served) -> None:
    async with connection(served.port):
        served.server.stop()
        async with asyncio.timeout(2):
            await asyncio.shield(served.task)


async def _nothing(scope, receive, send) -> None:
    raise AssertionError("not to be called")
