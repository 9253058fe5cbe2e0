"""One request to an app and its answer, both streamed."""

from __future__ import annotations

import asyncio

from starlette.types import Scope, Send

from flyte_binary.app.ingress.answers import AnswerTimeout, pass_answer
from flyte_binary.app.ingress.client import Client
from flyte_binary.app.ingress.headers import Header, request_head, response_headers
from flyte_binary.app.ingress.outside import Outside
from flyte_binary.app.ingress.pool import Pool
from flyte_binary.app.ingress.ports import Upstream
from flyte_binary.app.ingress.target import Target
from flyte_binary.app.ingress.upstream import Connection, UpstreamGone
from flyte_binary.rpc.disconnect import Drain, Interruptible

_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class Exchange:
    def __init__(self, scope: Scope, client: Client, send: Send, target: Target, outside: Outside) -> None:
        self._method: str = scope["method"]
        self._client = client
        self._send = send
        self._outside = outside
        self._head = request_head(scope, target, outside)
        self.answering = False
        """The client has got the head of the answer."""

        self.endless = False
        """The answer is a stream of events: it has no end of its own, and its reader asks again when it ends."""

    async def run(self, pool: Pool, upstream: Upstream, interrupt: Interruptible, drain: Drain) -> None:
        """A stop of the server, which is `interrupt`, waits for all but streams of events. Raises `UpstreamGone`,
        `AnswerTimeout`."""
        connection = await pool.get(upstream.host, upstream.port)
        try:
            try:
                await self._ask(connection, upstream)
            except UpstreamGone:
                if not self._may_repeat(connection):
                    raise
                connection = await pool.get(upstream.host, upstream.port, fresh=True)
                await self._ask(connection, upstream)
            self.endless = _is_endless(connection.headers)
            if self.endless:
                drain.add(interrupt)
            await self._answer(connection, upstream)
        except BaseException:
            connection.close()
            raise
        if not self._client.has_sent:
            connection.close()  # it has not got the whole request, and cannot take another
        pool.give_back(upstream.host, upstream.port, connection)

    def _may_repeat(self, connection: Connection) -> bool:
        """A kept connection was being closed when the request came; it was not worked on, and can be sent again."""
        kept = connection.used > 0
        return kept and not connection.received and not self._client.body_kind and self._method in _REPEATABLE

    async def _ask(self, connection: Connection, upstream: Upstream) -> None:
        """The time to the first byte counts from the end of the request's body."""
        connection.begin(without_body=self._method == "HEAD")
        connection.write(self._head)
        self._client.send_body_to(connection)
        loop, seconds = asyncio.get_running_loop(), upstream.request_timeout
        try:
            async with asyncio.timeout(seconds if self._client.has_sent else None) as limit:
                self._client.when_sent = lambda: limit.reschedule(loop.time() + seconds)
                await connection.head()
        except TimeoutError:
            raise AnswerTimeout(seconds) from None
        finally:
            self._client.when_sent = None

    async def _answer(self, connection: Connection, upstream: Upstream) -> None:
        headers = response_headers(connection.status, connection.headers, self._outside, upstream.port)
        if not self._client.is_asked:
            headers.append((b"connection", b"close"))  # it may send its body after all, or not
        self.answering = True
        await pass_answer(connection, self._send, headers)


def _is_endless(headers: list[Header]) -> bool:
    values = dict(headers)
    return values.get(b"content-type", b"").startswith(b"text/event-stream") and b"content-length" not in values
