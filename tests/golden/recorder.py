"""A recording reverse proxy: passes every call on unchanged and keeps what was asked and answered, decoded.

It writes the same form as the recordings of the reference: one entry a call with `from`, `method`, `request`, and
`response`, `error` or `stream`; besides `at`, the time of the request, in seconds since 1970. Two instances with
different `caller` names share one `Recording`, so that the calls of the driver and those of running tasks can be told
apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.golden.wire import Envelopes, Json, Method, answer_of, json_from_bytes, method_of, unpacked

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]  # the types of the ASGI specification
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te"})


@dataclass
class Recording:
    """Calls in order of arrival. `open` counts those whose answer is not complete yet."""

    calls: list[Json] = field(default_factory=list)
    open: int = 0

    def take(self) -> list[Json]:
        """The calls since the last take."""
        taken, self.calls = self.calls, []
        return taken


class Recorder:
    """The ASGI application. `target` is the origin to pass calls on to, `caller` the value of `from`."""

    def __init__(self, target: str, recording: Recording, caller: str) -> None:
        self._recording = recording
        self._caller = caller
        self._client = httpx.AsyncClient(base_url=target, timeout=httpx.Timeout(30, read=None))

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One HTTP exchange, or the life of the application, at whose end the connections to the target are closed."""
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self._client.aclose()
            await asyncio.sleep(0)  # lets the loop take leave of the closed connections before it ends
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = await _body(receive)
        method = method_of(scope["path"])
        entry = _entry(self._caller, scope, body, method)
        if method is not None:
            self._recording.calls.append(entry)
        self._recording.open += 1
        pump = asyncio.create_task(self._pass_on(scope, body, send, _Answer(entry, method)), name="pass on")
        gone = asyncio.create_task(_disconnect(receive), name="watch for disconnect")
        try:
            done, _ = await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
            if pump not in done and method is not None and method.server_stream:
                entry["closed_by"] = "client"
        finally:
            gone.cancel()
            pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pump
            self._recording.open -= 1

    async def _pass_on(self, scope: MutableMapping[str, Any], body: bytes, send: Send, answer: _Answer) -> None:
        query = f"?{scope['query_string'].decode()}" if scope["query_string"] else ""
        headers = [(name, value) for name, value in scope["headers"] if name not in _HOP_BY_HOP]
        request = self._client.build_request(
            scope["method"], scope["raw_path"].decode() + query, headers=headers, content=body
        )
        response = await self._client.send(request, stream=True)
        try:
            passed = [(name.lower(), value) for name, value in response.headers.raw if name.lower() not in _HOP_BY_HOP]
            await send({"type": "http.response.start", "status": response.status_code, "headers": passed})
            answer.start(response)
            async for piece in _pieces(response):
                answer.feed(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            answer.finish()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await response.aclose()


class _Answer:
    """Collects an answer into its entry while it passes by."""

    def __init__(self, entry: Json, method: Method | None) -> None:
        self._entry = entry
        self._method = method
        self._began = time.monotonic()
        self._body = b""
        self._envelopes: Envelopes | None = None

    def start(self, response: httpx.Response) -> None:
        self._status = response.status_code
        self._encoding = response.headers.get("content-encoding")
        self._content_type = response.headers.get("content-type", "")
        self._entry["http"] = response.status_code
        if self._method is not None and self._method.server_stream:
            self._entry["stream"] = []
            if self._content_type.startswith("application/connect+"):
                self._envelopes = Envelopes(self._method.response, self._content_type)

    def feed(self, piece: bytes) -> None:
        if self._envelopes is None:
            self._body += piece
            return
        passed = round((time.monotonic() - self._began) * 1000, 1)
        self._entry["stream"] += [{"ms": passed, **found} for found in self._envelopes.feed(piece)]

    def finish(self) -> None:
        if self._method is None:
            return
        if self._method.server_stream:
            self._entry["closed_by"] = "server"
            return
        body = unpacked(self._body, self._encoding)
        self._entry.update(answer_of(self._status, body, self._content_type, self._method.response))


async def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in response.aiter_raw():
        yield piece


def _entry(caller: str, scope: MutableMapping[str, Any], body: bytes, method: Method | None) -> Json:
    entry: Json = {"from": caller, "method": scope["path"].strip("/"), "at": time.time(), "request": {}}
    if method is None:
        return entry
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    content_type = headers.get("content-type", "")
    if method.server_stream:
        found = Envelopes(method.request, content_type).feed(body)
        entry["request"] = found[0]["msg"] if found else {}
    elif body:
        entry["request"] = json_from_bytes(
            unpacked(body, headers.get("content-encoding")), method.request, content_type
        )
    return entry


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            return body


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
