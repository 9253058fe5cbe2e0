from __future__ import annotations

import gzip
import json

import httpx
import pytest
from flyteidl2.workflow.run_service_connect import RunServiceClient

from flyte_binary.domain.errors import InvalidArgument, ResourceExhausted
from flyte_binary.rpc.compression import Inflater, inflate
from flyte_binary.rpc.envelope import EnvelopeReader
from tests.rpc.transport.conftest import LIMIT_BYTES, Served
from tests.rpc.transport.probe import Probe, details, request_for, watch_for
from tests.rpc.transport.raw import connection, end_of_stream, envelope

DETAILS = "/flyteidl2.workflow.RunService/GetRunDetails"
WATCH = "/flyteidl2.workflow.RunService/WatchRuns"
PROTO = {"content-type": "application/proto"}
STREAM = {"content-type": "application/connect+proto"}
GZIP = {"content-encoding": "gzip"}


async def test_a_compressed_request_is_inflated(http: httpx.AsyncClient, probe: Probe) -> None:
    body = gzip.compress(request_for("r1").SerializeToString())
    assert (await http.post(DETAILS, headers=PROTO | GZIP, content=body)).status_code == 200
    assert probe.requests == [request_for("r1")]


@pytest.mark.parametrize("body", [b"not gzip at all", gzip.compress(b"x" * 5000, mtime=0)[:-9], b"\x1f\x8b"])
async def test_a_body_that_is_no_gzip_is_the_callers_mistake(http: httpx.AsyncClient, body: bytes) -> None:
    response = await http.post(DETAILS, headers=PROTO | GZIP, content=body)
    assert (response.status_code, response.json()["code"]) == (400, "invalid_argument")


async def test_an_encoding_that_is_not_supported_is_unimplemented(http: httpx.AsyncClient) -> None:
    response = await http.post(DETAILS, headers=PROTO | {"content-encoding": "zstd"}, content=b"x")
    assert (response.status_code, response.json()["code"]) == (501, "unimplemented")
    assert "gzip" in response.json()["message"]


async def test_large_answers_are_compressed_for_those_who_accept_it(http: httpx.AsyncClient) -> None:
    body = request_for("large").SerializeToString()
    packed = await http.post(DETAILS, headers=PROTO | {"accept-encoding": "gzip"}, content=body)
    plain = await http.post(DETAILS, headers=PROTO | {"accept-encoding": "identity"}, content=body)
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < 5000
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content == details("x" * 100_000).SerializeToString()


async def test_a_message_at_the_limit_is_served_and_one_above_is_not(http: httpx.AsyncClient) -> None:
    frame = len(request_for("x" * (LIMIT_BYTES - 100)).SerializeToString()) - (LIMIT_BYTES - 100)
    largest = request_for("x" * (LIMIT_BYTES - frame)).SerializeToString()
    assert len(largest) == LIMIT_BYTES
    for headers, body in ((PROTO, largest), (PROTO | GZIP, gzip.compress(largest))):
        assert (await http.post(DETAILS, headers=headers, content=body)).status_code == 200
    for headers, body in ((PROTO, largest + b"\0"), (PROTO | GZIP, gzip.compress(largest + b"\0"))):
        response = await http.post(DETAILS, headers=headers, content=body)
        assert (response.status_code, response.json()["code"]) == (429, "resource_exhausted")
        assert str(LIMIT_BYTES) in response.json()["message"]


async def test_a_declared_length_over_the_limit_is_refused_before_the_body_is_sent(served: Served) -> None:
    async with connection(served.port) as client:
        await client.send(DETAILS, PROTO, b"", length=LIMIT_BYTES + 1)
        assert "429" in (await client.head()).splitlines()[0]


async def test_a_client_that_sends_too_much_reads_the_answer_and_the_server_goes_on(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.url) as http:
        response = await http.post(DETAILS, headers=PROTO, content=b"\0" * (20 * LIMIT_BYTES))
        assert response.json()["code"] == "resource_exhausted"
        assert (await http.post(DETAILS, headers=PROTO)).status_code == 200


async def test_a_gzip_bomb_is_stopped_at_the_limit() -> None:
    bomb = gzip.compress(bytes(64 * LIMIT_BYTES), 1)
    made = 0
    inflater = Inflater()
    for piece in inflater.feed(bomb):
        assert len(piece) <= 1024 * 1024
        made += len(piece)
        if made > LIMIT_BYTES:
            break
    assert made <= LIMIT_BYTES + 1024 * 1024
    with pytest.raises(ResourceExhausted):
        await inflate(bomb, limit_bytes=LIMIT_BYTES)


async def test_several_gzip_members_are_one_body() -> None:
    assert await inflate(gzip.compress(b"ab") + gzip.compress(b"cd"), limit_bytes=100) == b"abcd"


@pytest.mark.parametrize("size", [0, 1, 1024 * 1024 - 1, 1024 * 1024, 1024 * 1024 + 1, 3 * 1024 * 1024])
async def test_nothing_is_lost_at_the_edges_of_pieces(size: int) -> None:
    text = bytes(size)
    assert await inflate(gzip.compress(text), limit_bytes=size) == text


async def test_a_stream_may_be_compressed_by_envelope_or_as_a_whole(http: httpx.AsyncClient, probe: Probe) -> None:
    probe.more.set()
    message = watch_for("p").SerializeToString()
    by_envelope = await http.post(
        WATCH, headers=STREAM | {"connect-content-encoding": "gzip"}, content=envelope(gzip.compress(message), 1)
    )
    as_a_whole = await http.post(WATCH, headers=STREAM | GZIP, content=gzip.compress(envelope(message)))
    assert end_of_stream(by_envelope.content) == end_of_stream(as_a_whole.content) == {}
    assert len(probe.contexts) == 2


async def test_an_envelope_over_the_limit_is_refused_before_it_arrives(http: httpx.AsyncClient) -> None:
    body = b"\0" + (LIMIT_BYTES + 1).to_bytes(4, "big") + b"xx"
    response = await http.post(WATCH, headers=STREAM, content=body)
    assert end_of_stream(response.content)["error"]["code"] == "resource_exhausted"


async def test_an_envelope_that_inflates_over_the_limit_is_refused(http: httpx.AsyncClient) -> None:
    body = envelope(gzip.compress(bytes(LIMIT_BYTES + 1)), 1)
    response = await http.post(WATCH, headers=STREAM | {"connect-content-encoding": "gzip"}, content=body)
    assert end_of_stream(response.content)["error"]["code"] == "resource_exhausted"


async def test_a_bomb_around_a_whole_stream_is_stopped(http: httpx.AsyncClient) -> None:
    bomb = gzip.compress(envelope(bytes(LIMIT_BYTES)) + bytes(64 * LIMIT_BYTES), 1)
    response = await http.post(WATCH, headers=STREAM | GZIP, content=bomb)
    assert end_of_stream(response.content)["error"]["code"] in ("invalid_argument", "unimplemented")


@pytest.mark.parametrize(
    "body", [b"", b"\0\0", envelope(watch_for("p"))[:-1], envelope(watch_for("p")) * 2, b"\x40\0\0\0\0"]
)
async def test_a_stream_that_breaks_the_protocol_gets_an_error_and_no_internal_one(
    http: httpx.AsyncClient, body: bytes
) -> None:
    response = await http.post(WATCH, headers=STREAM, content=body)
    assert response.status_code == 200
    assert end_of_stream(response.content)["error"]["code"] in ("invalid_argument", "unimplemented")


def test_envelopes_are_cut_wherever_the_network_cut_them() -> None:
    wire = envelope(b"one") + envelope(b"") + envelope(b"three", 1)
    for size in range(1, len(wire) + 1):
        reader, found = EnvelopeReader(limit_bytes=10), []
        for start in range(0, len(wire), size):
            reader.add(wire[start : start + size])
            while (taken := reader.take()) is not None:
                found.append(taken)
        reader.end()
        assert found == [(0, b"one"), (0, b""), (1, b"three")]
    reader.add(b"\0")
    with pytest.raises(InvalidArgument):
        reader.end()


async def test_the_sdks_gzip_requests_of_many_megabytes_pass(served: Served) -> None:
    client = RunServiceClient(served.url)
    name = "x" * (LIMIT_BYTES - 1000)
    assert (await client.get_run_details(request_for(name))).details.action.id.run.name == name


async def test_json_streams_work_too(http: httpx.AsyncClient, probe: Probe) -> None:
    probe.more.set()
    body = envelope(json.dumps({"projectId": {"name": "p"}}).encode())
    response = await http.post(WATCH, headers={"content-type": "application/connect+json"}, content=body)
    assert response.headers["content-type"] == "application/connect+json"
    assert end_of_stream(response.content) == {}
