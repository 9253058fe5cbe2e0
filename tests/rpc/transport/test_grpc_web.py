from __future__ import annotations

import httpx
import pytest
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.protocol import ProtocolType
from flyteidl2.workflow.run_service_connect import RunServiceClient

from tests.rpc.transport.conftest import Served
from tests.rpc.transport.probe import details, request_for, watch_for
from tests.rpc.transport.raw import envelope, envelopes

DETAILS = "/flyteidl2.workflow.RunService/GetRunDetails"


@pytest.fixture
def grpc_web(served: Served) -> RunServiceClient:
    return RunServiceClient(served.url, protocol=ProtocolType.GRPC_WEB)


async def test_a_unary_call_is_answered(grpc_web: RunServiceClient) -> None:
    assert (await grpc_web.get_run_details(request_for("r1"))).details.action.id.run.name == "r1"


async def test_a_stream_is_answered(grpc_web: RunServiceClient, served: Served) -> None:
    served.world.probe.more.set()
    names = [m.runs[0].action.id.run.name async for m in grpc_web.watch_runs(watch_for("p"))]
    assert names == ["first", "second"]


async def test_an_error_keeps_its_code_and_sentence(grpc_web: RunServiceClient) -> None:
    with pytest.raises(ConnectError) as caught:
        await grpc_web.get_run_details(request_for("missing"))
    assert (caught.value.code, caught.value.message) == (Code.NOT_FOUND, "run p/d/missing does not exist")


async def test_a_deadline_is_kept(grpc_web: RunServiceClient) -> None:
    with pytest.raises(ConnectError) as caught:
        await grpc_web.get_run_details(request_for("slow"), timeout_ms=100)
    assert caught.value.code is Code.DEADLINE_EXCEEDED


async def test_trailers_come_in_the_body(http: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/grpc-web", "x-grpc-web": "1"}
    response = await http.post(DETAILS, headers=headers, content=envelope(request_for("r1")))
    assert response.headers["content-type"] == "application/grpc-web+proto"
    assert envelopes(response.content) == [
        (0, details("r1").SerializeToString()),
        (0x80, b"grpc-status: 0\r\n"),
    ]


async def test_a_service_that_is_not_mounted_is_unimplemented_here_too(http: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/grpc-web+proto"}
    response = await http.post("/flyteidl2.app.AppService/Get", headers=headers, content=envelope(b""))
    ((flags, trailers),) = envelopes(response.content)
    assert flags == 0x80
    assert b"grpc-status: 12" in trailers
    assert b"flyteidl2.app.AppService/Get is not available on this server." in trailers


@pytest.mark.parametrize("value", ["1", "5x", "123456789S", "-1S", "S", ""])
async def test_a_timeout_that_cannot_be_read_is_the_callers_mistake(http: httpx.AsyncClient, value: str) -> None:
    headers = {"content-type": "application/grpc-web+proto", "grpc-timeout": value}
    response = await http.post(DETAILS, headers=headers, content=envelope(request_for("r1")))
    ((_, trailers),) = envelopes(response.content)
    assert trailers.startswith(b"grpc-status: 3\r\n")
