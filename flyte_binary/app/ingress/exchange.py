"""One request to an app and its answer, both streamed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.types import Message, Receive, Scope, Send

from flyte_binary.app.ingress.headers import Outside, request_head, response_headers
from flyte_binary.app.ingress.ports import Upstream
from flyte_binary.app.ingress.target import Target
from flyte_binary.app.ingress.upstream import Connection, Pool, UpstreamGone

_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_WATCH_AFTER_SECONDS = 0.05
"""Most answers are there by then, and nobody needs to look whether their client has left."""


class ClientGone(Exception):
    """Nobody waits for the answer."""


class AnswerTimeout(Exception):
    """The app took too long for the first byte."""


class Exchange:
    def __init__(self, scope: Scope, receive: Receive, send: Send, target: Target, outside: Outside) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._outside = outside
        self._head = request_head(scope, target, outside)
        self._body_kind = _body_kind(scope)
        self._sent = asyncio.Event()
        """The whole request has been passed on."""

        self.answering = False
        """The client has got the head of the answer."""

    async def run(self, pool: Pool, upstream: Upstream) -> None:
        """Raises `UpstreamGone`, `AnswerTimeout`, `ClientGone`."""
        connection = await pool.get(upstream.host, upstream.port)
        try:
            try:
                await self._run(connection, upstream)
            except UpstreamGone:
                if not self._may_repeat(connection):
                    raise
                connection.close()
                connection = await pool.get(upstream.host, upstream.port, fresh=True)
                await self._run(connection, upstream)
        except BaseException:
            connection.close()
            raise
        pool.give_back(upstream.host, upstream.port, connection)

    def _may_repeat(self, connection: Connection) -> bool:
        """A kept connection was being closed when the request came; it was not worked on, and can be sent again."""
        fresh = connection.used == 0
        return not fresh and not connection.received and not self._body_kind and self._scope["method"] in _REPEATABLE

    async def _run(self, connection: Connection, upstream: Upstream) -> None:
        connection.begin(without_body=self._scope["method"] == "HEAD")
        connection.write(self._head)
        async with self._listening_to_client(connection):
            await self._first_byte(connection, upstream.request_timeout)
            await self._answer(connection, upstream)
        if not self._sent.is_set():
            connection.close()  # it has not got the whole request, and cannot take another

    @asynccontextmanager
    async def _listening_to_client(self, connection: Connection) -> AsyncGenerator[None]:
        """Pass the request's body on; if the client leaves, what is inside ends with `ClientGone`."""
        me, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert me is not None
        left = False
        listening: asyncio.Task[None] | None = None

        def ended(task: asyncio.Task[None]) -> None:
            nonlocal left
            if not task.cancelled() and isinstance(task.exception(), ClientGone):
                left = True
                me.cancel()

        def listen() -> None:
            nonlocal listening
            listening = loop.create_task(self._listen(connection), name="client of an app")
            listening.add_done_callback(ended)

        timer: asyncio.TimerHandle | None = None
        if self._body_kind:
            listen()
        else:
            self._sent.set()
            timer = loop.call_later(_WATCH_AFTER_SECONDS, listen)
        try:
            yield
        except asyncio.CancelledError:
            if not left:
                raise
            me.uncancel()
            raise ClientGone from None
        finally:
            if timer is not None:
                timer.cancel()
            if listening is not None:
                listening.remove_done_callback(ended)
                listening.cancel()
                await asyncio.wait({listening})

    async def _first_byte(self, connection: Connection, timeout_seconds: float) -> None:
        """The time counts from the end of the request's body."""
        if not self._sent.is_set():
            head, sent = asyncio.ensure_future(connection.head()), asyncio.ensure_future(self._sent.wait())
            try:
                await asyncio.wait({head, sent}, return_when=asyncio.FIRST_COMPLETED)
                if head.done():
                    return head.result()
            finally:
                for future in (head, sent):
                    future.cancel()
                await asyncio.wait({head, sent})
        try:
            async with asyncio.timeout(timeout_seconds):
                await connection.head()
        except TimeoutError:
            raise AnswerTimeout(f"the app did not answer within {timeout_seconds:g} s") from None

    async def _answer(self, connection: Connection, upstream: Upstream) -> None:
        headers = response_headers(connection.headers, self._outside, f"{upstream.host}:{upstream.port}")
        self.answering = True
        await self._send({"type": "http.response.start", "status": connection.status, "headers": headers})
        while True:
            data = await connection.body()
            more = bool(data) and not connection.complete
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
            if not more:
                return

    async def _listen(self, connection: Connection) -> None:
        """Raises `ClientGone`. An app may answer before it has read everything."""
        chunked = self._body_kind == "chunked"
        while not self._sent.is_set():
            message: Message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            data: bytes = message.get("body", b"")
            if data:
                connection.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
                await connection.drain()
            if not message.get("more_body"):
                connection.write(b"0\r\n\r\n" if chunked else b"")
                self._sent.set()
        while (await self._receive())["type"] != "http.disconnect":
            continue
        raise ClientGone


def _body_kind(scope: Scope) -> str:
    """`chunked`, `length`, or empty for a request without a body."""
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return "chunked"
        if name == b"content-length" and value.strip() not in (b"0", b""):
            return "length"
    return ""
