from __future__ import annotations

import base64
import gzip
import json
from contextlib import suppress

import httpx
import pyqwest
import pytest
from connectrpc.code import Code
from connectrpc.codec import proto_json_codec
from connectrpc.errors import ConnectError
from flyteidl2.workflow import run_service_pb2
from flyteidl2.workflow.run_service_connect import RunServiceClient
from hypothesis import given
from hypothesis import strategies as st
from pyqwest.testing import ASGITransport

from flyte_binary.domain.errors import InvalidArgument
from flyte_binary.rpc.codec import CODECS
from tests.rpc.transport.conftest import World
from tests.rpc.transport.probe import Probe, request_for

DETAILS = "/flyteidl2.workflow.RunService/GetRunDetails"
CREATE = "/flyteidl2.workflow.RunService/CreateRun"
PROTO = {"content-type": "application/proto"}
JSON = {"content-type": "application/json"}


async def test_the_sdks_client_gets_its_answer(client: RunServiceClient) -> None:
    response = await client.get_run_details(request_for("r1"))
    assert response.details.action.id.run.name == "r1"


async def test_a_json_client_gets_its_answer(world: World) -> None:
    http_client = pyqwest.Client(ASGITransport(world.app))
    client = RunServiceClient("http://localhost", codec=proto_json_codec(), http_client=http_client)
    response = await client.get_run_details(request_for("r1"))
    assert response.details.action.id.run.name == "r1"


async def test_fields_that_this_server_does_not_know_are_ignored_in_json(http: httpx.AsyncClient) -> None:
    body = {"runId": {"name": "r1", "colour": "blue"}, "new_field": [1, {"a": None}]}
    response = await http.post(DETAILS, json=body)
    assert response.status_code == 200
    assert response.json() == {"details": {"action": {"id": {"run": {"name": "r1"}}}}}


@pytest.mark.parametrize("headers", [PROTO, JSON, JSON | {"content-type": "application/json; charset=utf-8"}])
async def test_an_empty_body_is_an_empty_message(
    http: httpx.AsyncClient, probe: Probe, headers: dict[str, str]
) -> None:
    response = await http.post(DETAILS, headers=headers)
    assert response.status_code == 200
    assert probe.requests == [run_service_pb2.GetRunDetailsRequest()]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (PROTO, b"\xff\xff\xff"),
        (PROTO, b"\x0a\x03\x0a\x01\xff"),
        (JSON, b"{"),
        (JSON, b"[1, 2]"),
        (JSON, b'"text"'),
        (JSON, b'{"runId": 7}'),
        (JSON, b'\xff\xfe{"runId": {}}'),
        (JSON, b'{"runId": ' * 5000),
        (JSON, b"[" * 200_000),
    ],
)
async def test_a_body_that_cannot_be_read_is_the_callers_mistake(
    http: httpx.AsyncClient, headers: dict[str, str], body: bytes
) -> None:
    response = await http.post(DETAILS, headers=headers, content=body)
    assert response.status_code == 400
    assert response.json()["code"] == "invalid_argument"
    assert "GetRunDetailsRequest" in response.json()["message"]


@given(st.sampled_from(["proto", "json"]), st.binary(max_size=200))
def test_no_bytes_at_all_make_a_codec_fail_otherwise(codec: str, body: bytes) -> None:
    with suppress(InvalidArgument):
        CODECS[codec].decode(body, run_service_pb2.CreateRunRequest)


_names = st.sampled_from(
    [field.json_name for field in run_service_pb2.CreateRunRequest.DESCRIPTOR.fields] + ["name", "seconds", "@type", ""]
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_names, _json, max_size=4))
def test_no_json_document_makes_the_codec_fail_otherwise(document: dict[str, object]) -> None:
    with suppress(InvalidArgument):
        CODECS["json"].decode(json.dumps(document).encode(), run_service_pb2.CreateRunRequest)


async def test_a_method_without_side_effects_may_be_called_with_get(http: httpx.AsyncClient) -> None:
    response = await http.get(
        DETAILS, params={"connect": "v1", "encoding": "json", "message": '{"runId":{"name":"r"}}'}
    )
    assert response.status_code == 200
    assert response.json()["details"]["action"]["id"]["run"]["name"] == "r"


async def test_get_takes_compressed_binary_messages(http: httpx.AsyncClient, probe: Probe) -> None:
    message = base64.urlsafe_b64encode(gzip.compress(request_for("r1").SerializeToString())).decode().rstrip("=")
    params = {"encoding": "proto", "base64": "1", "compression": "gzip", "message": message}
    response = await http.get(DETAILS, params=params)
    assert response.status_code == 200
    assert probe.requests == [request_for("r1")]


async def test_a_method_with_side_effects_may_not_be_called_with_get(http: httpx.AsyncClient) -> None:
    response = await http.get(CREATE, params={"encoding": "json", "message": "{}"})
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "params",
    [
        {"encoding": "json"},
        {"encoding": "json", "message": "{", "connect": "v1"},
        {"encoding": "json", "message": "{}", "connect": "v2"},
        {"encoding": "proto", "message": "%%%", "base64": "1"},
    ],
)
async def test_a_get_that_cannot_be_read_is_the_callers_mistake(
    http: httpx.AsyncClient, params: dict[str, str]
) -> None:
    response = await http.get(DETAILS, params=params)
    assert (response.status_code, response.json()["code"]) == (400, "invalid_argument")


async def test_a_method_that_is_not_there_yet_answers_unimplemented_with_a_sentence(client: RunServiceClient) -> None:
    with pytest.raises(ConnectError) as caught:
        await client.abort_run(run_service_pb2.AbortRunRequest())
    assert caught.value.code is Code.UNIMPLEMENTED
    assert caught.value.message == "flyteidl2.workflow.RunService/AbortRun is not available on this server."


async def test_a_service_that_is_not_mounted_answers_unimplemented_with_a_sentence(http: httpx.AsyncClient) -> None:
    response = await http.post("/flyteidl2.app.AppService/Get", headers=PROTO)
    assert response.status_code == 501
    assert response.json() == {
        "code": "unimplemented",
        "message": "flyteidl2.app.AppService/Get is not available on this server.",
    }


@pytest.mark.parametrize("path", ["/", "/nothing/here", "/flyteidl2", "/grpc.health.v1.Health/Check"])
async def test_an_unknown_path_is_not_found(http: httpx.AsyncClient, path: str) -> None:
    assert (await http.post(path, headers=PROTO)).status_code == 404


async def test_an_unknown_content_type_is_told_what_is_accepted(http: httpx.AsyncClient) -> None:
    response = await http.post(DETAILS, headers={"content-type": "text/xml"}, content=b"<a/>")
    assert response.status_code == 415
    assert "application/proto" in response.headers["accept-post"]


async def test_grpc_is_told_why_it_does_not_work_here(http: httpx.AsyncClient) -> None:
    response = await http.post(DETAILS, headers={"content-type": "application/grpc"}, content=b"\0\0\0\0\0")
    assert response.status_code == 415
    assert response.headers["grpc-status"] == "12"
    assert "HTTP/2" in response.headers["grpc-message"]


async def test_headers_that_are_not_text_do_no_harm(http: httpx.AsyncClient) -> None:
    response = await http.post(DETAILS, headers=[(b"content-type", b"application/proto"), (b"x-odd", b"\xff\xfe")])
    assert response.status_code == 200


@pytest.mark.parametrize("value", ["soon", "-1", "12345678901", "1.5", "\u0661"])
async def test_a_timeout_that_is_no_number_is_refused(http: httpx.AsyncClient, value: str) -> None:
    response = await http.post(
        DETAILS, headers=[(b"content-type", b"application/proto"), (b"connect-timeout-ms", value.encode())]
    )
    assert (response.status_code, response.json()["code"]) == (400, "invalid_argument")


async def test_another_version_of_the_protocol_is_refused(http: httpx.AsyncClient) -> None:
    response = await http.post(DETAILS, headers=PROTO | {"connect-protocol-version": "2"})
    assert (response.status_code, response.json()["code"]) == (400, "invalid_argument")
