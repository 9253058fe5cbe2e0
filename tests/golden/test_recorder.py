"""The recorder in front of a tiny Connect service: it changes nothing and understands what passes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

import httpx
import pytest
from flyteidl2.project import project_service_pb2
from flyteidl2.workflow import run_service_pb2

from tests.golden.normalise import Ids
from tests.golden.recorder import Recorder, Recording
from tests.golden.replay import replay
from tests.golden.serving import serving
from tests.golden.wire import envelope

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]  # the types of the ASGI specification
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

GET_PROJECT = "/flyteidl2.project.ProjectService/GetProject"
WATCH = "/flyteidl2.workflow.RunService/WatchActionDetails"


async def tiny_service(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
    """GetProject knows one project and gzips; WatchActionDetails sends one message and ends; the rest is not found."""
    request = b""
    event: MutableMapping[str, Any] = {"more_body": True}
    while event.get("more_body"):
        event = await receive()
        request += event.get("body", b"")
    if (b"content-encoding", b"gzip") in scope["headers"]:
        request = gzip.decompress(request)
    if scope["path"] == GET_PROJECT:
        asked = project_service_pb2.GetProjectRequest.FromString(request).id
        if asked == "gone":
            await _reply(send, 404, b'{"code":"not_found","message":"no such project"}', b"application/json")
            return
        found = project_service_pb2.GetProjectResponse()
        found.project.id = asked
        packed = gzip.compress(found.SerializeToString())
        await _reply(send, 200, packed, b"application/proto", [(b"content-encoding", b"gzip")])
    elif scope["path"] == WATCH:
        message = run_service_pb2.WatchActionDetailsResponse()
        message.details.id.name = "a0"
        end = json.dumps({}).encode()
        frames = envelope(message.SerializeToString()) + b"\x02" + len(end).to_bytes(4, "big") + end
        await _reply(send, 200, frames, b"application/connect+proto")
    else:
        await _reply(send, 404, b"nothing here", b"text/plain")


async def _reply(
    send: Send, status: int, body: bytes, kind: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    await send(
        {"type": "http.response.start", "status": status, "headers": [(b"content-type", kind), *(headers or [])]}
    )
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def recording() -> Recording:
    return Recording()


@pytest.fixture(scope="module")
def origin(recording: Recording) -> Iterator[str]:
    with serving(tiny_service) as target, serving(Recorder(target, recording, "sdk")) as front:
        yield front


@pytest.fixture(autouse=True)
def nothing_recorded_before(recording: Recording) -> None:
    recording.take()


def test_a_unary_call_is_recorded_decoded_and_passed_on_unchanged(origin: str, recording: Recording) -> None:
    body = gzip.compress(project_service_pb2.GetProjectRequest(id="p").SerializeToString())
    headers = {"content-type": "application/proto", "content-encoding": "gzip"}
    answer = httpx.post(origin + GET_PROJECT, content=body, headers=headers)
    assert answer.headers["content-encoding"] == "gzip"
    assert project_service_pb2.GetProjectResponse.FromString(answer.content).project.id == "p"
    [call] = recording.take()
    assert (call["from"], call["method"], call["request"]) == ("sdk", GET_PROJECT.strip("/"), {"id": "p"})
    assert call["response"] == {"project": {"id": "p"}}


def test_an_error_is_recorded_with_its_code(origin: str, recording: Recording) -> None:
    body = project_service_pb2.GetProjectRequest(id="gone").SerializeToString()
    answer = httpx.post(origin + GET_PROJECT, content=body, headers={"content-type": "application/proto"})
    assert answer.status_code == 404
    assert recording.take()[0]["error"] == {"code": "not_found", "message": "no such project"}


def test_a_stream_is_recorded_message_by_message_with_its_end(origin: str, recording: Recording) -> None:
    asked = run_service_pb2.WatchActionDetailsRequest()
    asked.action_id.name = "a0"
    httpx.post(
        origin + WATCH,
        content=envelope(asked.SerializeToString()),
        headers={"content-type": "application/connect+proto"},
    )
    [call] = recording.take()
    assert call["request"] == {"actionId": {"name": "a0"}}
    assert [{key: entry[key] for key in entry if key != "ms"} for entry in call["stream"]] == [
        {"msg": {"details": {"id": {"name": "a0"}}}},
        {"end": {}},
    ]
    assert call["closed_by"] == "server"


def test_paths_that_are_no_rpc_pass_without_being_recorded(origin: str, recording: Recording) -> None:
    assert httpx.get(f"{origin}/readyz").text == "nothing here"
    assert recording.take() == []


def test_a_replay_binds_placeholders_and_returns_what_was_answered(origin: str, recording: Recording) -> None:
    name = "rbcdfghjklmnpqrstvwx"
    calls = [
        {"from": "sdk", "method": GET_PROJECT.strip("/"), "request": {"id": "<run:1>"}},
        {"from": "sdk", "method": WATCH.strip("/"), "request": {}},
    ]
    first, second = replay(origin, calls, Ids({name: "<run:1>"}))
    assert recording.take()[0]["request"] == {"id": name}
    assert first["response"] == {"project": {"id": "<run:1>"}}
    assert second["stream"] == [{"msg": {"details": {"id": {"name": "a0"}}}}, {"end": {}}]
