"""Sends the requests of a recorded conversation to a server and records the answers in the recordings' form."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.golden.normalise import Ids, normalise_call
from tests.golden.wire import Envelopes, Json, answer_of, bytes_from_json, envelope, method_of

THEIR_STORE = "s3://flyte-data"
"""Where the reference kept its data when it was recorded."""

QUIET_SECONDS = 0.4
"""How long a stream that the server keeps open is read after its last message."""


def replay(base_url: str, calls: list[Json], ids: Ids, *, store: str = THEIR_STORE) -> list[Json]:
    """Plays `calls` in order; placeholders in their requests stand for the names that `ids` knows or meets on the way.

    Locations in the reference's bucket become locations below `store`. Returns normalised calls. A server that closes
    the connection without an answer is recorded as `aborted`.
    """
    answered: list[Json] = []
    with httpx.Client(base_url=base_url, timeout=httpx.Timeout(20)) as client:
        for call in calls:
            request = json.loads(ids.actual(json.dumps(call["request"]).replace(THEIR_STORE, store)))
            sent: dict[str, Json] = {"from": call["from"], "method": call["method"], "request": request}
            try:
                sent.update(_send(client, call, request))
            except httpx.RemoteProtocolError:
                sent["aborted"] = True
            answered.append(normalise_call(sent, ids))
    return answered


def _send(client: httpx.Client, call: Json, request: Json) -> dict[str, Json]:
    path = f"/{call['method']}"
    method = method_of(path)
    if method is None:
        return _plain(client.get(path))
    if call.get("get"):
        query = {"connect": "v1", "encoding": "json", "message": json.dumps(request)}
        response = client.get(path, params=query)
    elif call.get("json"):
        response = client.post(path, json=request)
    elif method.server_stream:
        return _stream(client, path, envelope(bytes_from_json(request, method.request)))
    else:
        body = bytes_from_json(request, method.request)
        response = client.post(path, content=body, headers={"content-type": "application/proto"})
    kind = response.headers.get("content-type", "")
    return {"http": response.status_code, **answer_of(response.status_code, response.content, kind, method.response)}


def _plain(response: httpx.Response) -> dict[str, Json]:
    if response.status_code == 200:
        return {"http": 200, "response": {"base64": response.text}}
    return {"http": response.status_code, "error": {"raw": response.text}}


def _stream(client: httpx.Client, path: str, body: bytes) -> dict[str, Json]:
    method = method_of(path)
    assert method is not None
    found: list[Json] = []
    timeout = httpx.Timeout(20, read=QUIET_SECONDS)
    headers = {"content-type": "application/connect+proto"}
    with client.stream("POST", path, content=body, headers=headers, timeout=timeout) as response:
        answer: dict[str, Any] = {"http": response.status_code, "stream": found, "closed_by": "server"}  # JSON
        if not response.headers.get("content-type", "").startswith("application/connect+"):
            return answer
        envelopes = Envelopes(method.response, response.headers["content-type"])
        try:
            for piece in response.iter_raw():
                found += envelopes.feed(piece)
        except httpx.ReadTimeout:
            answer["closed_by"] = "client"
    return answer
